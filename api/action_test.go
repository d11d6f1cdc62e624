package api_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func (w *world) act(verb, key string, value ...string) (*aweighv1.ActResponse, error) {
	req := &aweighv1.ActRequest{Verb: verb, Key: []byte(key)}
	for _, v := range value {
		req.Value, req.HasValue = []byte(v), true
	}
	resp, err := w.Act(w.ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	return resp.Msg, nil
}

func TestActionsOverTheAPI(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Actions = action.Table{
		{Verb: "look", Class: action.Read, When: "object.exists"},
		{Verb: "own", Class: action.Claim},
		{Verb: "pay", Class: action.Write, When: "object.version < 1 && caller.anchor == 'one'"},
		{Verb: "wave", Class: action.Signal},
	}
	w := newWorldUnder(t, p)
	req := &aweighv1.ActRequest{Verb: "pay", Key: []byte("/k"), Value: []byte("10"), HasValue: true,
		Once: &aweighv1.Once{Nonce: bytes.Repeat([]byte{7}, 16), ValidUntilNs: time.Now().Add(time.Minute).UnixNano()}}
	for _, again := range []bool{false, true} { // though it would be denied by then
		resp, err := w.Act(w.ctx, connect.NewRequest(req))
		if err != nil || resp.Msg.Class != "write" || resp.Msg.Repeated != again || (resp.Msg.Uid == "") != again {
			t.Fatalf("%v, %v; want repeated %v", resp, err, again)
		}
	}
	if got, err := w.act("look", "/k"); err != nil || string(got.Resolved.GetKv().GetValue()) != "10" || got.Class != "read" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := w.act("own", "/k"); err != nil || got.Class != "claim" {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string]struct {
		verb, key string
		value     []string
		reason    string
		text      string
	}{
		"the rule":          {"pay", "/k", []string{"11"}, api.Denied, "denied by the scope of all keys"},
		"its text":          {"pay", "/k", []string{"11"}, api.Denied, "pay (write) when object.version < 1"},
		"a rule that reads": {"look", "/none", nil, api.Denied, "look (read) when object.exists"},
		"unknown":           {"nod", "/k", nil, api.Denied, "no rule knows the verb nod"},
		"no value":          {"pay", "/other", nil, api.Invalid, "takes a value"},
		"a value":           {"own", "/k", []string{"1"}, api.Invalid, "takes no value"},
		"a value to read":   {"read", "/k", []string{"1"}, api.Invalid, "takes no value"},
		"a claim of none":   {"own", "/none", nil, api.NotFound, "key not found"},
		"no verb":           {"Pay", "/k", nil, api.Invalid, "lower-case word"},
		"no key":            {"pay", "", nil, api.Invalid, "key is not provided"},
	} {
		_, err := w.act(c.verb, c.key, c.value...)
		if got := reasonOf(t, err); got != c.reason || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, err := w.act("read", "/k"); err != nil || string(got.Resolved.Kv.Value) != "10" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := w.act("write", "/k", "12"); err != nil || got.Class != "write" {
		t.Errorf("%v, %v", got, err)
	}

	signals, err := w.Signals(w.ctx, connect.NewRequest(&aweighv1.SignalsRequest{Key: []byte("/k")}))
	if err != nil || !signals.Receive() || !signals.Msg().Created {
		t.Fatal(err, signals.Err())
	}
	if got, err := w.act("wave", "/k", "hello"); err != nil || got.Watchers != 1 || got.Class != "signal" {
		t.Errorf("%v, %v", got, err)
	}
	if !signals.Receive() || string(signals.Msg().Value) != "hello" || signals.Msg().AuthorName != "one" || signals.Msg().Verb != "wave" {
		t.Errorf("%v, %v", signals.Msg(), signals.Err())
	}
	signals.Close()
}

func TestRulesAreTriedOverTheAPI(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Actions = action.Table{{Verb: "pay", Class: action.Write, When: "caller.anchor == 'one'"}}
	w := newWorldUnder(t, p)
	judge := func(req *aweighv1.JudgeRequest) (*aweighv1.Said, error) {
		resp, err := w.Judge(w.ctx, connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		return resp.Msg.Said[len(resp.Msg.Said)-1], nil
	}
	key := []byte("/k")
	if got, err := judge(&aweighv1.JudgeRequest{Verb: "pay", Key: key}); err != nil || !got.Allowed || got.Class != "write" || !got.Decides {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := judge(&aweighv1.JudgeRequest{Verb: "pay", Key: key, Caller: bytes.Repeat([]byte{1}, 32)}); err != nil || got.Allowed || got.Rule != "pay (write) when caller.anchor == 'one'" {
		t.Errorf("%v, %v", got, err)
	}
	anchor := w.genesis.Anchors[0].Key.ID()
	if got, err := judge(&aweighv1.JudgeRequest{Verb: "pay", Key: key, Caller: anchor[:], Class: "claim", When: "caller.weight > 0"}); err != nil || !got.Allowed || got.Class != "claim" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := judge(&aweighv1.JudgeRequest{Verb: "nod", Key: key}); err != nil || got.Allowed || got.Rule != "" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := judge(&aweighv1.JudgeRequest{Verb: "nod", Key: key, Class: "read", When: "1 / object.version == 0"}); err != nil || got.Allowed || !strings.Contains(got.Detail, "division by zero") {
		t.Errorf("%v, %v", got, err)
	}
	for _, req := range []*aweighv1.JudgeRequest{
		{Verb: "nod", Key: key, Class: "read", When: "1.0 > 0.5"}, {Verb: "nod", Key: key, Class: "wrong"},
		{Verb: "nod"}, {Key: key}, {Verb: "nod", Key: key, Caller: []byte{1}},
	} {
		if _, err := judge(req); err == nil || reasonOf(t, err) != api.Invalid {
			t.Errorf("%v: %v", req, err)
		}
	}
}
