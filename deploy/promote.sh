#!/bin/sh
# Makes a standby the primary, when the primary is lost:
#
#     promote.sh CONNECTION          such as: promote.sh 'host=primary port=5432'
#
# CONNECTION is that of the lost primary, which must not answer: two primaries would accept different writes. Run it on
# the machine of the standby, as an administrator of PostgreSQL; PGHOST, PGPORT and PGUSER say how to reach it.
#
# The new primary acknowledges no write until it has a standby itself, which rebuild-standby.sh makes. Who prefers to
# take writes that one disk alone has: ALTER SYSTEM SET synchronous_standby_names = '', and '*' again afterwards.

set -eu
lost=${1:?"Give the connection of the lost primary, such as 'host=primary'."}

answers=0
pg_isready -q -d "$lost" || answers=$?
if [ "$answers" -ne 2 ]; then
    echo "The lost primary answers. Stop it for good, or its machine, and run this again. Nothing was changed." >&2
    exit 1
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
