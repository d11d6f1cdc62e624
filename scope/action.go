package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/refusal"
)

// Action is a verb that its author wants carried out on what a key names. The policy in
// force at its execution decides whether it is allowed, and of which class the verb is.
type Action struct {
	_      struct{} `cbor:",toarray"`
	Verb   string
	Class  action.Class // as its author knows it, so that its effect never changes on the way
	Object aweigh.UID   // zero: the object that Key names, or comes to name
	Key    []byte
	Value  []byte // to write, or to signal
}

// The errors of an Action.
var (
	// ErrDenied is wrapped where the policy does not let an author do something.
	ErrDenied = refusal.New(refusal.Denied, "scope: denied")
	// ErrClass is for a verb whose class is not the one that the author states.
	ErrClass = errors.New("scope: the policy has another class for that verb by now; ask again")
	// ErrSignal is for a signal in a block: signals are delivered, and stored
	// nowhere.
	ErrSignal = errors.New("scope: signals are delivered, and not ordered")
)

// denied is the failure of a denied verdict. Its text begins with that of
// ErrDenied, by which Failure recognizes it.
func denied(v action.Verdict) error { return fmt.Errorf("%w: %s", ErrDenied, v.Why) }

// isDenial reports whether a recorded reason is that of a denial.
func isDenial(why string) bool { return strings.HasPrefix(why, reason(ErrDenied)+": ") }

// check reports whether the action is well-formed. Fields that its class does not
// use must be absent, so that one meaning has one encoding.
func (a *Action) check(lim Limits) error {
	if err := action.CheckVerb(a.Verb); err != nil {
		return err
	}
	switch {
	case a.Class == action.Claim && len(a.Value) > 0:
		return errors.New("a claim with a value")
	case a.Class != action.Write && a.Class != action.Claim && a.Class != action.Signal:
		return fmt.Errorf("an action of class %s is none that is sent", a.Class)
	case len(a.Value) > lim.ValueBytes:
		return fmt.Errorf("a value of %d bytes, at most %d are taken", len(a.Value), lim.ValueBytes)
	}
	return lim.checkKey(a.Key)
}

// txn is the transaction that an action of class write stands for, nil for others.
func (a *Action) txn() *Txn {
	if a.Class != action.Write {
		return nil
	}
	return &Txn{Success: []Op{{Kind: OpPut, Key: a.Key, Value: a.Value}}}
}

// writes reports whether a mutation puts and deletes keys, or changes which objects they name.
func (m *Mutation) writes() bool { return m.Class == Write || m.Class == Act || m.Class == Name }
