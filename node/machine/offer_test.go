package machine

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// changes gives an offer back with one part of it changed, for each part in turn.
func changes(t *testing.T, change func(name string)) func(name string, v reflect.Value) {
	t.Helper()
	var each func(name string, v reflect.Value)
	each = func(name string, v reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			change(name + " longer")
			v.Set(old)
			each(name+"[0]", v.Index(0))
			return
		case reflect.Array:
			each(name+"[0]", v.Index(0))
			return
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.Name != "_" {
					each(name+"."+f.Name, v.Field(i))
				}
			}
			return
		default:
			t.Fatalf("%s is a %v, which this test cannot change", name, v.Kind())
		}
		change(name)
		v.Set(old)
	}
	return each
}

// TestOffersThatDifferAreFramedAnew changes every part of an offer: none may be
// sent in the frame of another, and the same twice is framed once.
func TestOffersThatDifferAreFramedAnew(t *testing.T) {
	signature := func() quorum.Signature { return quorum.Signature{Bytes: []byte{7}} }
	subject := quorum.Subject{Kind: quorum.Notarize, View: 3, Block: aweigh.Sum(nil)}
	o := Offer{
		View: 4, Votes: []OfferedVote{{Subject: subject, Signature: signature()}},
		Certificates: []quorum.Certificate{{Subject: subject, Signatures: []quorum.Signature{signature()}}},
	}
	copied := func() Offer {
		c := o
		c.Votes = []OfferedVote{o.Votes[0]}
		c.Votes[0].Signature.Bytes = bytes.Clone(o.Votes[0].Signature.Bytes)
		c.Certificates = []quorum.Certificate{{Subject: o.Certificates[0].Subject, Signatures: []quorum.Signature{o.Certificates[0].Signatures[0]}}}
		c.Certificates[0].Signatures[0].Bytes = bytes.Clone(o.Certificates[0].Signatures[0].Bytes)
		return c
	}
	var last framedOffer
	first := last.of(copied())
	if again := last.of(copied()); &again[0] != &first[0] {
		t.Error("the same offer is framed twice")
	}
	n, changed := 0, copied()
	changes(t, func(name string) {
		n++
		if got := last.of(changed); !bytes.Equal(got, Tagged(TagOffer, changed)) || bytes.Equal(got, first) {
			t.Errorf("with another %s it is sent in the frame of the old one", name)
		}
		last.of(copied())
	})("offer", reflect.ValueOf(&changed).Elem())
	if n < 20 {
		t.Errorf("only %d parts were changed", n)
	}
}
