package wysiwys

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// How a policy is rendered.
const (
	fieldAs  = "as"
	inForce  = "the policy in force, except for the following"
	defaults = "the defaults of mode %s, except for the following"
)

var (
	policyType   = reflect.TypeFor[scope.Policy]()
	mutationType = reflect.TypeFor[scope.Mutation]()
	decisionType = reflect.TypeFor[scope.Decision]()
	grantType    = reflect.TypeFor[scope.Grant]()
	opType       = reflect.TypeFor[scope.Op]()
	actionType   = reflect.TypeFor[scope.Action]()
	motionType   = reflect.TypeFor[scope.Motion]()
	childType    = reflect.TypeFor[scope.Child]()
	keyType      = reflect.TypeFor[votes.PublicKey]()
	durationType = reflect.TypeFor[time.Duration]()
	instantType  = reflect.TypeFor[aweigh.Instant]()
	stringer     = reflect.TypeFor[fmt.Stringer]()
)

// contentOf is an empty content of a class, nil for an unknown one.
func contentOf(c scope.Class) any {
	switch c {
	case scope.Write:
		return new(scope.Txn)
	case scope.Compact:
		return new(scope.Compaction)
	case scope.Govern:
		return new(scope.Decision)
	case scope.Lease:
		return new(scope.LeaseRequest)
	case scope.Name:
		return new(scope.Naming)
	case scope.Withdraw:
		return new(scope.Withdrawal)
	case scope.Act:
		return new(scope.Action)
	case scope.Permit:
		return new(scope.Access)
	case scope.Rejoin:
		return new(scope.Rejoining)
	case scope.Bring:
		return new(scope.Bringing)
	case scope.Carry:
		return new(scope.Carrying)
	}
	return nil
}

type renderer struct {
	inForce *scope.Policy // nil: policies are rendered in full
	full    bool
	child   bool // within a scope that is to be founded or given to others
}

// render is the form of a value, a pointer.
func (r renderer) render(v any) (Form, error) {
	x, err := r.field("", reflect.ValueOf(v).Elem())
	return x.Form, err
}

func (r renderer) field(name string, v reflect.Value) (x Field, err error) {
	x.Name = name
	switch t := v.Type(); {
	case t == policyType:
		x.Group = true
		x.Form, err = r.policy(v.Interface().(scope.Policy))
	case t.Kind() == reflect.Pointer:
		return r.field(name, v.Elem())
	case isLeaf(t):
		x.Value, x.Bare = leaf(v), isBare(t)
	case t.Kind() == reflect.Struct:
		x.Group = true
		r.child = r.child || t == childType
		x.Form, err = r.fields(v)
	case t.Kind() == reflect.Slice:
		x.Group, x.List = true, true
		for i := range v.Len() {
			item, err := r.field(place(i), v.Index(i))
			if err != nil {
				return x, err
			}
			x.Form = append(x.Form, item)
		}
	default:
		err = fmt.Errorf("a field of type %v", t)
	}
	return x, err
}

func (r renderer) fields(v reflect.Value) (f Form, err error) {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		if t.Name == "_" || v.Field(i).IsZero() {
			continue
		}
		if !t.IsExported() {
			return nil, fmt.Errorf("a field %s of type %v", t.Name, v.Type())
		}
		of := v.Field(i)
		switch {
		case v.Type() == mutationType && t.Name == "Content":
			content := contentOf(v.FieldByName("Class").Interface().(scope.Class))
			if content == nil {
				return nil, fmt.Errorf("a mutation of class %v", v.FieldByName("Class"))
			}
			if err := canon.Decode(of.Bytes(), content); err != nil {
				return nil, err
			}
			of = reflect.ValueOf(content)
		case v.Type() == mutationType && t.Name == "Grants":
			grants := make([]scope.Grant, of.Len())
			for i := range grants {
				if err := canon.Decode(of.Index(i).Bytes(), &grants[i]); err != nil {
					return nil, err
				}
			}
			of = reflect.ValueOf(grants)
		case v.Type() == motionType && t.Name == "Mutation":
			m := new(scope.Mutation)
			if err := canon.Decode(of.Bytes(), m); err != nil {
				return nil, err
			}
			of = reflect.ValueOf(m)
		case of.Kind() == reflect.Slice && of.Len() == 0:
			continue
		}
		x, err := r.field(snake(t.Name), of)
		if err != nil {
			return nil, err
		}
		if inHex(v.Type(), t.Name) {
			x.Value = hex.EncodeToString(of.Bytes())
		}
		x.Put = t.Name == "Value" && (v.Type() == opType || v.Type() == actionType)
		if x.Group && len(x.Form) == 0 && of.Kind() == reflect.Struct {
			continue
		}
		f = append(f, x)
	}
	return f, nil
}

// policy lists what a policy changes of one that is known, or all of it.
func (r renderer) policy(p scope.Policy) (Form, error) {
	as, base := "", scope.Policy{}
	switch {
	case r.full:
	case r.child:
		as, base = fmt.Sprintf(defaults, p.Rules.Mode), scope.DefaultPolicy(p.Rules.Mode)
	case r.inForce != nil:
		as, base = inForce, *r.inForce
	}
	changes := policytext.Diff(base, p)
	if back, err := policytext.Patch(base, changes); as != "" && (err != nil || back.Hash() != p.Hash()) { // as when approvals stand in another order
		as, changes = "", policytext.Diff(scope.Policy{}, p)
	}
	var f Form
	if as != "" {
		f = append(f, Field{Name: fieldAs, Value: as})
	}
	for _, c := range changes {
		f = append(f, Field{Name: c.Field, Value: c.To, From: c.From, Diff: as != ""})
	}
	return f, nil
}

// isLeaf reports whether values of a type are rendered as one text.
func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return t == keyType
	case reflect.Slice, reflect.Array:
		return t.Elem().Kind() == reflect.Uint8
	case reflect.Pointer, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return false
	}
	return true
}

// isBare reports whether the text of a leaf is a literal of JSON: a boolean or a number that stands for itself.
func isBare(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t != durationType && t != instantType && !t.Implements(stringer)
	}
	return false
}

// leaf is the text of a value.
func leaf(v reflect.Value) string {
	switch t := v.Type(); {
	case t == keyType:
		return v.Interface().(votes.PublicKey).String()
	case t == durationType:
		return time.Duration(v.Int()).String()
	case t == instantType:
		at := time.Unix(0, v.Int()).UTC()
		if text := at.Format(time.RFC3339Nano); at.Year() < 10_000 {
			return text
		}
		return strconv.FormatInt(v.Int(), 10)
	case t.Kind() == reflect.Uint8 && t.Implements(stringer):
		return v.Interface().(fmt.Stringer).String()
	case t.Kind() == reflect.Array:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return hex.EncodeToString(b)
	case t.Kind() == reflect.Slice:
		return octets(string(v.Bytes()))
	case t.Kind() == reflect.String:
		return octets(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// inHex reports whether a field of a struct holds random bytes, which are no text even where they are UTF-8.
func inHex(t reflect.Type, name string) bool {
	return t == mutationType && name == "Nonce" || t == decisionType && name == "Consent" ||
		t == grantType && name == "Signature"
}

// octets is a byte string: as it is if it is UTF-8, and otherwise quoted as in Go.
func octets(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

// snake is a name like "TxnOps" as "txn_ops".
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1]))) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// modeOf reads the mode of a base that is the defaults.
func modeOf(as string) (quorum.Mode, bool) {
	for _, m := range quorum.Modes() {
		if as == fmt.Sprintf(defaults, m) {
			return m, true
		}
	}
	return 0, false
}
