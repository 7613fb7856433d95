# The server for a team, or for one person who prefers a container. As a user without rights; the memory is in /memory.
#
#     docker build --tag mcp-memory .
#     docker run --rm -p 127.0.0.1:8765:8765 -v memory:/memory mcp-memory token create --name me --rights write
#     docker run --detach -p 127.0.0.1:8765:8765 -v memory:/memory mcp-memory
FROM python:3.13.9-slim-bookworm AS build
COPY . /source
RUN pip install --no-cache-dir --prefix /installed -c /source/constraints.txt "/source[postgres,s3]"

FROM python:3.13.9-slim-bookworm
COPY --from=build /installed /usr/local
RUN useradd --system --uid 10001 memory && install -d -o memory -m 700 /memory
USER 10001
ENV MCP_MEMORY_HOME=/memory
VOLUME /memory
EXPOSE 8765
HEALTHCHECK --interval=10s CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/livez', timeout=3)"
ENTRYPOINT ["mcp-memory"]
CMD ["serve", "--transport", "http", "--host", "0.0.0.0"]
