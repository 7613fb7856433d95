#!/bin/sh
# Makes a standby the primary, when the primary is lost:
#
#     promote.sh [--force] CONNECTION          such as: promote.sh 'host=primary port=5432'
#
# CONNECTION is that of the lost primary, which must not answer: two primaries would accept different writes. Run it on
# the machine of the standby, as an administrator of PostgreSQL; PGHOST, PGPORT and PGUSER say how to reach it.
#
# It also refuses if the name of the lost primary is unknown, which may be a typing error, or while this standby still
# receives from a primary. With --force it promotes then: when you have made sure that no primary runs.
#
# The new primary acknowledges no write until it has a standby itself, which rebuild-standby.sh makes. Who prefers to
# take writes that one disk alone has: ALTER SYSTEM SET synchronous_standby_names = '', and '*' again afterwards.

set -eu
force=
if [ "${1-}" = --force ]; then
    force=yes
    shift
fi
lost=${1:?"Give the connection of the lost primary, such as 'host=primary'."}

refuse() {
    echo "$* Nothing was changed." >&2
    exit 1
}

ask() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -d postgres -c "$1"
}

answers=0
pg_isready -q -d "$lost" || answers=$?
case $answers in
0 | 1) refuse "The lost primary answers. Stop it for good, or its machine, and run this again." ;;
3) refuse "This is no connection: $lost" ;;
esac

is_standby=$(ask 'SELECT pg_is_in_recovery()')
if [ "$is_standby" != t ]; then
    refuse "This is no standby: the server on ${PGHOST-this machine} accepts writes itself."
fi

if [ -z "$force" ]; then
    case $(LC_ALL=C PGCONNECT_TIMEOUT=5 psql -X -w -d "$lost" -c '' 2>&1 || true) in
    *"could not translate host name"*)
        refuse "The name of the lost primary is unknown: $lost. If it is right and no primary runs, give --force."
        ;;
    esac
    tries=5 # of a server that was just killed, the connection ends within a moment
    receiver="SELECT sender_host FROM pg_stat_wal_receiver WHERE status = 'streaming'"
    from=$(ask "$receiver")
    while [ -n "$from" ]; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ]; then
            refuse "This standby receives from a primary, $from, which may be alive: a second one would accept" \
                "different writes. Stop that one for good, or its machine. If it cannot answer any more, wait a minute" \
                "(wal_receiver_timeout), or give --force."
        fi
        sleep 1
        from=$(ask "$receiver")
    done
fi

# Before it accepts writes: whatever name the old primary waited for, any standby may confirm them.
psql -X -q -v ON_ERROR_STOP=1 -d postgres <<'SQL'
ALTER SYSTEM SET synchronous_standby_names = '*';
SELECT pg_reload_conf() AS reloaded, pg_promote() AS promoted \gset
\if :promoted
\echo 'This is the primary now. Writes wait for a standby: run rebuild-standby.sh on another machine.'
\else
\warn 'It was not promoted within a minute. See its log.'
DO 'BEGIN RAISE EXCEPTION $$not promoted$$; END';
\endif
SQL
