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

if /i "%~1"=="hook" goto hook

where /q $PATH:mcp-memory && (mcp-memory %* & goto end)
echo mcp-memory was not found. Install it: pipx install git+https://github.com/mcp-memory/mcp-memory 1>&2
exit /b 127
:end
exit /b %errorlevel%

:hook
where /q $PATH:mcp-memory && (mcp-memory %* 2>nul & exit /b 0)
exit /b 0
