#!/bin/sh
# Plays the example conversation in a copy of the example project and verifies the Trace that it leaves.
# Usage: examples/run.sh FLOE
set -eu

named=${1:?"usage: examples/run.sh FLOE, the path of the floe binary"}
floe=$named
floe=$(CDPATH='' cd -- "$(dirname -- "$floe")" && pwd)/$(basename -- "$floe")
example=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/fix-the-build

if [ ! -x "$floe" ]; then
    echo "examples/run.sh: $floe is no program; build it with \`make build\`" >&2
    exit 2
fi

# The copy is the Workspace; the state is kept beside it, so that nothing of yours is touched. Both stay for you to look at.
place=$(mktemp -d "${TMPDIR:-/tmp}/floe-example.XXXXXX")
cp -R "$example" "$place/project"
FLOE_HOME=$place/state
export FLOE_HOME

echo "Workspace: $place/project"
echo

"$floe" run \
    --message 'The check of this project fails. Find out why, and fix it.' \
    --model "script:$place/project/session.yaml" \
    --workspace "$place/project"

session=$(basename "$(ls -d "$FLOE_HOME"/heads/*)")
echo
echo "\$ floe trace verify $session"
"$floe" trace verify "$session"
echo
echo "Look at it again: FLOE_HOME=$FLOE_HOME $named trace show $session"
echo "Remove it:        rm -r $place"
