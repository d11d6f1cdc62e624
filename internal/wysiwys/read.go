package wysiwys

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Read gives the value of a form: into is a pointer to a zero value. inForce is the policy
// that the form's differences are to.
func (f Form) Read(into any, inForce *scope.Policy) error {
	return reading{inForce}.fill(reflect.ValueOf(into).Elem(), Field{Group: true, Form: f})
}

type reading struct{ inForce *scope.Policy }

func (r reading) fill(v reflect.Value, x Field) error {
	switch t := v.Type(); {
	case t == policyType:
		p, err := r.policy(x)
		if err == nil {
			v.Set(reflect.ValueOf(p))
		}
		return err
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return r.fill(v.Elem(), x)
	case isLeaf(t):
		if x.Group || x.Diff {
			return fmt.Errorf("%s has no value", x.Name)
		}
		return setLeaf(v, x.Value)
	case !x.Group:
		return fmt.Errorf("%s has no fields", x.Name)
	case t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, len(x.Form), len(x.Form)))
		for i := range x.Form {
			if x.Form[i].Name != place(i) {
				return fmt.Errorf("%s stands at place %d", x.Form[i].Name, i)
			}
			if err := r.fill(v.Index(i), x.Form[i]); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() == reflect.Struct:
		return r.fields(v, x.Form)
	}
	return fmt.Errorf("%s is of type %v", x.Name, v.Type())
}

func (r reading) fields(v reflect.Value, f Form) error {
	t := v.Type()
	for i := range t.NumField() {
		name := t.Field(i).Name
		if len(f) == 0 || name == "_" || f[0].Name != snake(name) {
			continue
		}
		x := f[0]
		f = f[1:]
		var err error
		switch {
		case t == mutationType && name == "Content":
			content := contentOf(v.FieldByName("Class").Interface().(scope.Class))
			if content == nil {
				return errors.New("content of an unknown class")
			}
			err = r.encoded(v.Field(i), x, content)
		case t == mutationType && name == "Grants":
			var grants []scope.Grant
			err = r.fill(reflect.ValueOf(&grants).Elem(), x)
			var raw [][]byte
			for j := range grants {
				raw = append(raw, grants[j].Encode())
			}
			v.Field(i).Set(reflect.ValueOf(raw))
		case t == motionType && name == "Mutation":
			err = r.encoded(v.Field(i), x, new(scope.Mutation))
		case inHex(t, name):
			var b []byte
			b, err = hex.DecodeString(x.Value)
			v.Field(i).SetBytes(b)
		default:
			err = r.fill(v.Field(i), x)
		}
		if err != nil {
			return err
		}
	}
	if len(f) > 0 {
		return fmt.Errorf("%v has no field %q, or it stands elsewhere", t, f[0].Name)
	}
	return nil
}

// encoded fills in bytes that are the encoding of a value.
func (r reading) encoded(v reflect.Value, x Field, content any) error {
	if err := r.fill(reflect.ValueOf(content).Elem(), x); err != nil {
		return err
	}
	v.SetBytes(canon.Encode(content))
	return nil
}

func (r reading) policy(x Field) (scope.Policy, error) {
	var base scope.Policy
	f := x.Form
	if len(f) > 0 && f[0].Name == fieldAs {
		mode, ok := modeOf(f[0].Value)
		switch {
		case ok:
			base = scope.DefaultPolicy(mode)
		case f[0].Value == inForce && r.inForce != nil:
			base = *r.inForce
		default:
			return base, fmt.Errorf("no policy is known as %q", f[0].Value)
		}
		f = f[1:]
	}
	changes := make([]policytext.Change, len(f))
	for i := range f {
		changes[i] = policytext.Change{Field: f[i].Name, From: f[i].From, To: f[i].Value}
	}
	return policytext.Patch(base, changes)
}

func setLeaf(v reflect.Value, text string) (err error) {
	switch t := v.Type(); {
	case t == keyType:
		var k votes.PublicKey
		if k, err = votes.ParsePublicKey(text); err == nil {
			v.Set(reflect.ValueOf(k))
		}
	case t == durationType:
		var d time.Duration
		d, err = time.ParseDuration(text)
		v.SetInt(int64(d))
	case t == instantType && strings.Contains(text, "T"):
		var at time.Time
		at, err = time.Parse(time.RFC3339Nano, text)
		v.SetInt(at.UnixNano())
	case t.Kind() == reflect.Uint8 && t.Implements(stringer):
		for n := range 256 {
			if v.SetUint(uint64(n)); v.Interface().(fmt.Stringer).String() == text {
				return nil
			}
		}
		err = fmt.Errorf("no %v is called %q", t, text)
	case t.Kind() == reflect.Array:
		var b []byte
		if b, err = hex.DecodeString(text); err == nil && len(b) != v.Len() {
			err = fmt.Errorf("%d bytes in place of %d", len(b), v.Len())
		}
		reflect.Copy(v, reflect.ValueOf(b))
	case t.Kind() == reflect.Slice || t.Kind() == reflect.String:
		if strings.HasPrefix(text, `"`) {
			text, err = strconv.Unquote(text)
		}
		if t.Kind() == reflect.String {
			v.SetString(text)
		} else {
			v.SetBytes([]byte(text))
		}
	case t.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, t.Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, t.Bits())
		v.SetUint(n)
	default:
		err = fmt.Errorf("a value of type %v", t)
	}
	return err
}
