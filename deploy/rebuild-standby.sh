#!/bin/sh
# Makes a standby of the data directory of a lost primary, or of an empty one:
#
#     rebuild-standby.sh CONNECTION          such as: rebuild-standby.sh 'host=standby user=standby'
#
# CONNECTION is that of the present primary, as a user who may replicate. Run it as the user of PostgreSQL, with PGDATA
# set, while PostgreSQL does not run there; then start it. What the directory contained is kept beside it: it may have
# writes that nobody acknowledged. Delete it when you need no more of them. Its listen_addresses are set again, because
# those of the primary may be addresses of that machine.

set -eu
primary=${1:?"Give the connection of the present primary, such as 'host=standby user=standby'."}
data=${PGDATA:?"Set PGDATA to the data directory."}

tries=10 # a server that was just killed may take a moment to end
while pg_ctl status -D "$data" >/dev/null 2>&1; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
        echo "PostgreSQL runs in $data. Stop it, and run this again. Nothing was changed." >&2
        exit 1
    fi
    sleep 1
done
listens=
if [ -e "$data" ] && [ -n "$(ls -A "$data")" ]; then
    kept="$data.before-$(date -u +%Y%m%dT%H%M%SZ)"
    mv "$data" "$kept"
    echo "Kept what was there: $kept"
    listens=$(postgres -C listen_addresses -D "$kept" 2>/dev/null || true)
fi
pg_basebackup -d "$primary" -D "$data" -R -X stream -c fast
if [ -n "$listens" ]; then
    echo "listen_addresses = '$listens'" >>"$data/postgresql.auto.conf"
fi
echo "Start PostgreSQL. Writes are acknowledged again as soon as it has caught up."
