package votes

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

var update = flag.Bool("update", false, "write testdata/ballots.json anew")

// vector is all that another implementation needs to compare itself with.
type vector struct {
	Scheme  string         `json:"scheme"`
	Seed    string         `json:"seed"` // all byte strings are hexadecimal
	Public  PublicKey      `json:"public"`
	Anchor  aweigh.Hash    `json:"anchor"`
	Domain  Domain         `json:"domain"`
	Subject quorum.Subject `json:"subject"`

	Context   Context `json:"context"`
	Signing   string  `json:"signing_bytes"`
	Signature string  `json:"signature"`
	Ballot    string  `json:"ballot"`
}

func vectors(t *testing.T) (all []vector) {
	for i, name := range schemes {
		for j, s := range []quorum.Subject{
			{Kind: quorum.Notarize, View: 1, Block: fill(0xaa)},
			{Kind: quorum.Notarize, View: 24, Block: fill(0xbb)},
			{Kind: quorum.Nullify, View: 1 << 16},
			{Kind: quorum.Finalize, View: 1<<64 - 1, Block: fill(0xcc)},
		} {
			if name == MLDSA65 && j != 1 {
				continue // they are long
			}
			d := home
			d.Epoch = aweigh.Epoch(uint64(1)<<(12*j) - 1)
			k := keyOf(t, name, byte(i+1))
			b := ballotOf(k, d, s)
			all = append(all, vector{
				Scheme: name, Seed: hex.EncodeToString(k.s().seed), Public: k.Public(), Anchor: b.Anchor,
				Domain: d, Subject: s, Context: ContextBallot,
				Signing:   hex.EncodeToString(b.SigningBytes()),
				Signature: hex.EncodeToString(b.Signature),
				Ballot:    hex.EncodeToString(b.Encode()),
			})
		}
	}
	return all
}

// The vectors pin every byte: a change here is a change of the protocol.
func TestBallotsMatchTheVectors(t *testing.T) {
	const file = "testdata/ballots.json"
	got := vectors(t)
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []vector
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d vectors in the file, %d made", len(want), len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("vector %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func TestVectorsVerify(t *testing.T) {
	for _, v := range vectors(t) {
		raw, err := hex.DecodeString(v.Ballot)
		if err != nil {
			t.Fatal(err)
		}
		b, err := DecodeBallot(raw)
		if err == nil {
			err = Verify(v.Public, v.Context, b.SigningBytes(), b.Signature)
		}
		if err != nil || b.Domain != v.Domain || b.Subject != v.Subject || b.Anchor != v.Anchor {
			t.Errorf("%s %v: %v", v.Scheme, v.Subject, err)
		}
	}
}
