FROM python:3.13-slim AS build
COPY . /source
RUN pip install --no-cache-dir --prefix /installed -c /source/constraints.txt "/source[postgres,s3]"

FROM python:3.13-slim
COPY --from=build /installed /usr/local
RUN useradd --create-home memory
USER memory
ENV MCP_MEMORY_HOME=/home/memory/.mcp-memory
VOLUME /home/memory
EXPOSE 8765
HEALTHCHECK --interval=10s CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/livez', timeout=3)"
ENTRYPOINT ["mcp-memory"]
CMD ["serve", "--transport", "http", "--host", "0.0.0.0"]
