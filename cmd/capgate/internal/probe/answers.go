package probe

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// Answers of the probe.
const (
	Yes         = "yes"
	No          = "no"
	NotObserved = "not observed"
)

// Results of the probe.
const (
	Fires       = "FIRES"
	DoesNotFire = "DOES NOT FIRE"
)

// Questions of the probe, as the JSON has them.
const (
	QuestionFires   = "fires_in_subagent"
	QuestionExit2   = "exit2_blocks_in_subagent"
	QuestionDeny    = "deny_blocks_in_subagent"
	QuestionRewrite = "rewrite_honoured_in_subagent"
	QuestionAsk     = "ask_denied_without_ui"
	QuestionSpawn   = "spawn_blocked_without_ui"
)

// questionText is how humans are asked.
var questionText = map[string]string{
	QuestionFires:   "the hook fires inside a subagent",
	QuestionExit2:   "exit status 2 blocks a call there",
	QuestionDeny:    "a deny blocks a call there",
	QuestionRewrite: "a rewritten input is honoured there",
	QuestionAsk:     "an ask is denied where nobody can be asked",
	QuestionSpawn:   "a spawn that is to be asked about is blocked where nobody can be asked",
}

// Answer is one answer with what it was drawn from.
type Answer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"` // "yes", "no" or "not observed"
	Why      string `json:"why"`
	Calls    []int  `json:"calls"` // lines of calls.jsonl
}

// observed is everything that a probed client has shown.
type observed struct {
	calls   []call
	outcome outcome
}

// evaluate answers the questions about a client, the ones that the result hangs on first.
func (o observed) evaluate(name string) (answers []Answer, result string) {
	if name == client.OMP {
		answers = []Answer{o.fires(), o.blocks(QuestionDeny, wordDeny, true), o.blocks(QuestionSpawn, wordSpawn, false)}
	} else {
		answers = []Answer{
			o.fires(), o.blocks(QuestionExit2, wordExit2, true), o.blocks(QuestionDeny, wordDeny, true), o.rewrites(),
			o.blocks(QuestionAsk, wordAsk, false),
		}
	}
	if answers[0].Answer == Yes && answers[1].Answer == Yes {
		return answers, Fires
	}
	return answers, DoesNotFire
}

// asked returns the first call of a word that the hook was asked about.
func (o observed) asked(word string, inside bool) (c call, found bool) {
	for _, c := range o.calls {
		if c.before() && c.word() == word && (c.AgentID != "") == inside {
			return c, true
		}
	}
	return c, false
}

// ran returns the record of a call's end, which there is only of calls that were made.
func (o observed) ran(useID string) (c call, found bool) {
	for _, c := range o.calls {
		if c.after() && c.UseID == useID && !c.IsError {
			return c, true
		}
	}
	return c, false
}

// control returns the command that passes inside a subagent, once it has run.
func (o observed) control() (before, after call, ok bool) {
	if before, ok = o.asked(wordPass, true); ok {
		after, ok = o.ran(before.UseID)
	}
	return before, after, ok
}

func (o observed) denied(useID string) bool {
	for _, d := range o.outcome.Denials {
		if d.UseID == useID {
			return true
		}
	}
	return false
}

func (o observed) fires() Answer {
	a := Answer{Question: QuestionFires, Calls: []int{}}
	outside := false
	for _, c := range o.calls {
		switch {
		case !c.before():
		case c.AgentID != "":
			if a.Answer == "" {
				a.Why = fmt.Sprintf("agent_id %s, agent_type %s", c.AgentID, cli.OrDash(c.AgentType))
			}
			a.Answer = Yes
			a.Calls = append(a.Calls, c.Line)
		case c.word() != "" && c.word() != wordAsk && c.word() != wordSpawn:
			outside = true
		}
	}
	if a.Answer == Yes {
		return a
	}
	if line, why := o.unseen(); why != "" && !outside {
		a.Answer, a.Why = No, why
		if line > 0 {
			a.Calls = append(a.Calls, line)
		}
		return a
	}
	a.Answer = NotObserved
	switch {
	case outside:
		a.Why = "the model ran the commands itself, or the client does not tell that a subagent did (no agent_id)"
	case len(o.calls) == 0:
		a.Why = "the hook was never run"
	default:
		a.Why = "no subagent made a call"
	}
	return a
}

// unseen says by what the client tells of a subagent that worked while the hook was asked about none of its calls: the end
// of the call that started it, or, where the hook was never run, the statistics.
func (o observed) unseen() (line int, why string) {
	for _, c := range o.calls {
		var response struct {
			Uses int `json:"totalToolUseCount"`
		}
		if c.after() && c.spawns() && json.Unmarshal(c.Response, &response) == nil && response.Uses > 0 {
			return c.Line, fmt.Sprintf("a subagent made %s, and the hook was asked about none of them", cli.Plural(response.Uses, "call"))
		}
	}
	var stats struct {
		Completed int `json:"completed"`
	}
	if len(o.calls) == 0 && json.Unmarshal(o.outcome.Stats, &stats) == nil && stats.Completed > 0 {
		return 0, fmt.Sprintf("%s came to an end, and the hook was never run", cli.Plural(stats.Completed, "subagent"))
	}
	return 0, ""
}

// blocks answers whether the call of a word was kept from being made.
func (o observed) blocks(question, word string, inside bool) Answer {
	a := Answer{Question: question, Answer: NotObserved, Calls: []int{}}
	asked, found := o.asked(word, inside)
	if !found {
		a.Why = fmt.Sprintf("the hook was not asked about capgate-probe-%s%s", word, where(inside))
		return a
	}
	a.Calls = append(a.Calls, asked.Line)
	if after, ran := o.ran(asked.UseID); ran {
		a.Calls = append(a.Calls, after.Line)
		a.Answer, a.Why = No, "the client made the call all the same"
		return a
	}
	if o.denied(asked.UseID) {
		a.Answer, a.Why = Yes, "the client reports the call as denied"
		return a
	}
	before, after, ok := o.control()
	switch {
	case !ok:
		a.Why = "nothing shows whether the call was made: not even the end of a call that passed was reported"
	case !o.outcome.Completed:
		a.Why = "the client did not come to its end"
	case word == wordSpawn:
		a.Why = "the client did not report what became of it" // an agent may have been started and done nothing
	default:
		a.Answer, a.Why = Yes, "the call has no end, as one that passed has"
		a.Calls = append(a.Calls, before.Line, after.Line)
	}
	return a
}

func (o observed) rewrites() Answer {
	a := Answer{Question: QuestionRewrite, Answer: NotObserved, Calls: []int{}}
	asked, found := o.asked(wordRewrite, true)
	if !found {
		a.Why = fmt.Sprintf("the hook was not asked about capgate-probe-%s%s", wordRewrite, where(true))
		return a
	}
	a.Calls = append(a.Calls, asked.Line)
	after, ran := o.ran(asked.UseID)
	if !ran {
		a.Why = "the end of the call was not reported"
		return a
	}
	a.Calls = append(a.Calls, after.Line)
	switch {
	case bytes.Contains(after.Response, []byte(rewritten)):
		a.Answer, a.Why = Yes, "its output is that of the other command"
	case bytes.Contains(after.Response, []byte("capgate-probe-"+wordRewrite)):
		a.Answer, a.Why = No, "its output is that of the command as it was"
	default:
		a.Why = "its output is of neither command"
	}
	return a
}

func where(inside bool) string {
	if inside {
		return " inside a subagent"
	}
	return " on the main thread"
}
