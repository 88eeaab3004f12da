package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// Answers of the probe.
const (
	answerYes         = "yes"
	answerNo          = "no"
	answerNotObserved = "not observed"
)

// Results of the probe.
const (
	probeFires = "FIRES"
	probeNot   = "DOES NOT FIRE"
)

// Questions of the probe, as the JSON has them.
const (
	questionFires   = "fires_in_subagent"
	questionExit2   = "exit2_blocks_in_subagent"
	questionDeny    = "deny_blocks_in_subagent"
	questionRewrite = "rewrite_honoured_in_subagent"
	questionAsk     = "ask_denied_without_ui"
	questionSpawn   = "spawn_blocked_without_ui"
)

// questionText is how humans are asked.
var questionText = map[string]string{
	questionFires:   "the hook fires inside a subagent",
	questionExit2:   "exit status 2 blocks a call there",
	questionDeny:    "a deny blocks a call there",
	questionRewrite: "a rewritten input is honoured there",
	questionAsk:     "an ask is denied where nobody can be asked",
	questionSpawn:   "a spawn that is to be asked about is blocked where nobody can be asked",
}

// probeAnswer is one answer with what it was drawn from.
type probeAnswer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"` // "yes", "no" or "not observed"
	Why      string `json:"why"`
	Calls    []int  `json:"calls"` // lines of calls.jsonl
}

// observed is everything that a probed client has shown.
type observed struct {
	calls   []probeCall
	outcome clientOutcome
}

// clientOutcome is what a client said at its end.
type clientOutcome struct {
	Exit      int
	Completed bool            // by itself, and by its own word without an error
	Error     string          // what it said otherwise
	Denials   []probeDenial   // the calls that it reports as not made
	Stats     json.RawMessage // of its subagents; nil where it gives none
}

type probeDenial struct {
	Tool  string `json:"tool_name"`
	UseID string `json:"tool_use_id"`
	Text  string `json:"text,omitempty"`
}

// evaluate answers the questions about a client, the ones that the result hangs on first.
func (o observed) evaluate(client string) (answers []probeAnswer, result string) {
	if client == "omp" {
		answers = []probeAnswer{o.fires(), o.blocks(questionDeny, wordDeny, true), o.blocks(questionSpawn, wordSpawn, false)}
	} else {
		answers = []probeAnswer{
			o.fires(), o.blocks(questionExit2, wordExit2, true), o.blocks(questionDeny, wordDeny, true), o.rewrites(),
			o.blocks(questionAsk, wordAsk, false),
		}
	}
	if answers[0].Answer == answerYes && answers[1].Answer == answerYes {
		return answers, probeFires
	}
	return answers, probeNot
}

// asked returns the first call of a word that the hook was asked about.
func (o observed) asked(word string, inside bool) (c probeCall, found bool) {
	for _, c := range o.calls {
		if c.before() && c.word() == word && (c.AgentID != "") == inside {
			return c, true
		}
	}
	return c, false
}

// ran returns the record of a call's end, which there is only of calls that were made.
func (o observed) ran(useID string) (c probeCall, found bool) {
	for _, c := range o.calls {
		if c.after() && c.UseID == useID && !c.IsError {
			return c, true
		}
	}
	return c, false
}

// control returns the command that passes inside a subagent, once it has run.
func (o observed) control() (before, after probeCall, ok bool) {
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

func (o observed) fires() probeAnswer {
	a := probeAnswer{Question: questionFires, Calls: []int{}}
	outside := false
	for _, c := range o.calls {
		switch {
		case !c.before():
		case c.AgentID != "":
			if a.Answer == "" {
				a.Why = fmt.Sprintf("agent_id %s, agent_type %s", c.AgentID, cli.OrDash(c.AgentType))
			}
			a.Answer = answerYes
			a.Calls = append(a.Calls, c.Line)
		case c.word() != "" && c.word() != wordAsk && c.word() != wordSpawn:
			outside = true
		}
	}
	if a.Answer == answerYes {
		return a
	}
	if line, why := o.unseen(); why != "" && !outside {
		a.Answer, a.Why = answerNo, why
		if line > 0 {
			a.Calls = append(a.Calls, line)
		}
		return a
	}
	a.Answer = answerNotObserved
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
func (o observed) blocks(question, word string, inside bool) probeAnswer {
	a := probeAnswer{Question: question, Answer: answerNotObserved, Calls: []int{}}
	asked, found := o.asked(word, inside)
	if !found {
		a.Why = fmt.Sprintf("the hook was not asked about capgate-probe-%s%s", word, where(inside))
		return a
	}
	a.Calls = append(a.Calls, asked.Line)
	if after, ran := o.ran(asked.UseID); ran {
		a.Calls = append(a.Calls, after.Line)
		a.Answer, a.Why = answerNo, "the client made the call all the same"
		return a
	}
	if o.denied(asked.UseID) {
		a.Answer, a.Why = answerYes, "the client reports the call as denied"
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
		a.Answer, a.Why = answerYes, "the call has no end, as one that passed has"
		a.Calls = append(a.Calls, before.Line, after.Line)
	}
	return a
}

func (o observed) rewrites() probeAnswer {
	a := probeAnswer{Question: questionRewrite, Answer: answerNotObserved, Calls: []int{}}
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
		a.Answer, a.Why = answerYes, "its output is that of the other command"
	case bytes.Contains(after.Response, []byte("capgate-probe-"+wordRewrite)):
		a.Answer, a.Why = answerNo, "its output is that of the command as it was"
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

// claudeOutcome reads what Claude Code printed with --output-format json.
func claudeOutcome(exit int, stdout, stderr []byte) clientOutcome {
	o := clientOutcome{Exit: exit}
	var result struct {
		Result  string          `json:"result"`
		IsError bool            `json:"is_error"`
		Denials []probeDenial   `json:"permission_denials"`
		Stats   json.RawMessage `json:"subagent_stats"`
	}
	err := json.Unmarshal(bytes.TrimSpace(stdout), &result)
	o.Denials, o.Stats = result.Denials, result.Stats
	switch {
	case err == nil && !result.IsError && exit == 0:
		o.Completed = true
	case result.IsError && result.Result != "":
		o.Error = result.Result
	case err != nil && exit == 0:
		o.Error = "its output is no JSON result"
	default:
		o.Error = lastWords(stderr, stdout, exit)
	}
	return o
}

// ompOutcome reads the events that Oh My Pi printed with --mode json.
func ompOutcome(exit int, stdout, stderr []byte) clientOutcome {
	o := clientOutcome{Exit: exit}
	failure := ""
	for line := range bytes.Lines(stdout) {
		var event struct {
			Type   string `json:"type"`
			UseID  string `json:"toolCallId"`
			Tool   string `json:"toolName"`
			Result struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
			IsError bool `json:"isError"`
			Message struct {
				Role       string `json:"role"`
				StopReason string `json:"stopReason"`
				Error      string `json:"errorMessage"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		switch event.Type {
		case "tool_execution_end":
			if event.IsError {
				d := probeDenial{Tool: event.Tool, UseID: event.UseID}
				if len(event.Result.Content) > 0 {
					d.Text = fmt.Sprintf("%.300s", event.Result.Content[0].Text)
				}
				o.Denials = append(o.Denials, d)
			}
		case "message_end":
			if event.Message.Role == "assistant" {
				failure = ""
				if event.Message.StopReason == "error" {
					failure = cli.OrDash(event.Message.Error)
				}
			}
		case "agent_end":
			o.Completed = exit == 0
		}
	}
	if failure != "" {
		o.Completed, o.Error = false, failure
	} else if !o.Completed {
		o.Error = lastWords(stderr, stdout, exit)
	}
	return o
}

// lastWords is what a client that failed said, on one line.
func lastWords(stderr, stdout []byte, exit int) string {
	for _, text := range [][]byte{stderr, stdout} {
		if words := strings.Join(strings.Fields(string(text)), " "); words != "" {
			return fmt.Sprintf("%.300s", words)
		}
	}
	return fmt.Sprintf("it said nothing, exit status %d", exit)
}
