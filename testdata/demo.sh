#!/bin/sh
# Plays a research loop against its cap with the binaries in $1, on tool calls recorded from the real client.
# Ends with status 1 at the first step that differs from what it says.
set -eu

bin=$(cd "$1" && pwd)
payloads=$(cd "$(dirname "$0")/payloads/claude-code-2.1.332" && pwd)
search=$payloads/PreToolUse-WebSearch-general-purpose.json
write=$payloads/PreToolUse-Write-main.json
session=5f1d2c3b-8a90-4e17-9c42-0d6b7a1e9f55 # the session of the recorded calls
run=storm-42

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A clean environment: nothing that the developer has set takes part.
for name in $(env | sed -n 's/^\(CAPGATE_[A-Z_]*\|VOYAGE_[A-Z_]*\|CLAUDE_PLUGIN_DATA\)=.*/\1/p'); do unset "$name"; done
export CAPGATE_ENABLED=1 CAPGATE_DATA_DIR="$scratch/state"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }

# hook FILE: feeds a recorded call to the hook and leaves its exit status, stdout and stderr.
hook() {
	status=0
	"$bin/capgate-hook" <"$1" >"$scratch/out" 2>"$scratch/err" || status=$?
	[ ! -s "$scratch/out" ] || fail "the hook wrote to stdout: $(cat "$scratch/out")"
}
expect_pass() {
	hook "$1"
	[ "$status" -eq 0 ] || fail "$2: exit $status, expected 0: $(cat "$scratch/err")"
	echo "hook: exit 0  $2"
}

say "1. Open a run of 4 turns x 2 dimensions and arm the session"
"$bin/capgate" scope open --session "$session" --run "$run" --max-conv-turns 4 --max-dimensions 2

say "2. The loop: each turn is begun, and then searches, the last one too"
for dimension in economics history; do
	for turn in 1 2 3 4; do
		"$bin/capgate" turn begin --run "$run" --dimension "$dimension"
		expect_pass "$search" "WebSearch in a subagent"
	done
	"$bin/capgate" turn end --run "$run" --dimension "$dimension"
done

say "3. At 8 of 8 the hook blocks the next search, and tells the model why"
expect_block() {
	hook "$search"
	[ "$status" -eq 2 ] || fail "the hook ended with $status at the cap, expected 2"
	grep -q "turn budget spent ($1)" "$scratch/err" || fail "not the reason of a spent budget: $(cat "$scratch/err")"
	echo "hook: exit $status  $(cat "$scratch/err")"
}
expect_block "8 of 8, run $run"
id=$(sed -n 's/.*\[capgate \([0-9A-Z]*\)\].*/\1/p' "$scratch/err")

say "4. The loop's own ninth turn is refused as well, hook or no hook"
status=0
"$bin/capgate" turn begin --run "$run" || status=$?
[ "$status" -eq 2 ] || fail "the ninth turn ended with $status, expected 2"
echo "capgate turn begin: exit $status"

say "5. Nobody else is touched"
sed "s/$session/00000000-0000-4000-8000-000000000000/" "$search" >"$scratch/other.json"
expect_pass "$scratch/other.json" "the same call of an unrelated session"
expect_pass "$write" "Write in the capped session: the findings can be written up"

say "6. Why was it blocked?"
"$bin/capgate" explain "$id"

say "7. Disarm the session: everything passes again"
"$bin/capgate" scope close --session "$session"
expect_pass "$search" "WebSearch after scope close"

say "8. A loop may also count each turn after it was taken, in one word"
"$bin/capgate" scope open --session "$session" --run after --max-conv-turns 2
for turn in 1 2; do
	expect_pass "$search" "WebSearch in turn $turn"
	"$bin/capgate" turn --run after --key "$turn"
done
expect_block "2 of 2, run after"
"$bin/capgate" scope close --session "$session"

say "9. All of it in one command: capgate loop"
status=0
turn='sed "s/$1/$CAPGATE_SESSION/" "$2" | "$0/capgate-hook" && echo "hook: exit 0  WebSearch in turn $CAPGATE_TURN"'
"$bin/capgate" loop --run night --max-conv-turns 3 -- sh -c "$turn" "$bin" "$session" "$search" || status=$?
[ "$status" -eq 2 ] || fail "capgate loop ended with $status at the cap, expected 2"
echo "capgate loop: exit $status"

say "10. What the ledger holds"
"$bin/capgate" run show "$run"
"$bin/capgate" ledger verify

say "demo: every step as expected"
