@echo off
rem What `launch` is on other systems; see there. cmd.exe would look into the user's project before PATH, and read
rem the marks in what is written as %VALUE%: hence the variable, `where $PATH:`, and the exclamation marks.
setlocal EnableDelayedExpansion
set "NoDefaultCurrentDirectoryInExePath=1"

if defined CLAUDE_PLUGIN_OPTION_SPACE set "MCP_MEMORY_SPACE=!CLAUDE_PLUGIN_OPTION_SPACE!"
if defined CLAUDE_PLUGIN_OPTION_LLM set "MCP_MEMORY_LLM=!CLAUDE_PLUGIN_OPTION_LLM!"
if defined CLAUDE_PLUGIN_OPTION_LLM_API_KEY set "MCP_MEMORY_LLM_API_KEY=!CLAUDE_PLUGIN_OPTION_LLM_API_KEY!"
set "CLAUDE_PLUGIN_OPTION_LLM_API_KEY="
set "PATH=!PATH!;!USERPROFILE!\.local\bin"
set "source=git+https://github.com/mcp-memory/mcp-memory"
set "fetched=!LOCALAPPDATA!\mcp-memory\program"

if /i "%~1"=="hook" goto hook

where /q $PATH:mcp-memory && (mcp-memory %* & goto end)
where /q $PATH:uvx || goto known
set "program="
for /f "usebackq delims=" %%p in (`uvx --from !source! python -c "import shutil; print(shutil.which('mcp-memory') or '')"`) do set "program=%%p"
if not defined program goto known
if not exist "!LOCALAPPDATA!\mcp-memory" mkdir "!LOCALAPPDATA!\mcp-memory"
>"!fetched!" echo !program!
:known
call :read
if exist "!program!" ("!program!" %* & goto end)
where /q $PATH:pipx && (pipx run --spec !source! mcp-memory %* & goto end)
echo mcp-memory was not found. Install it: pipx install !source! 1>&2
exit /b 127
:end
exit /b %errorlevel%

:hook
where /q $PATH:mcp-memory && (mcp-memory %* 2>nul & exit /b 0)
call :read
if exist "!program!" ("!program!" %* 2>nul & exit /b 0)
exit /b 0

:read
set "program="
if exist "!fetched!" set /p program=<"!fetched!"
exit /b 0
