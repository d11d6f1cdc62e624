package votes

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/veraison/go-cose"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

func vote(motion byte, c Choice) MotionVote {
	return MotionVote{Network: home.Network, Scope: home.Scope, Motion: fill(motion), Choice: c}
}

func motionBallot(t testing.TB, k PrivateKey, v MotionVote, comment string) MotionBallot {
	t.Helper()
	b, err := SignMotionBallot(k.Signer(), v, comment)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func offlineBallot(t testing.TB, k PrivateKey, v MotionVote, comment string) MotionBallot {
	t.Helper()
	b, err := SignMotionBallotOffline(k.Signer(), v, comment)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// voters are some keys.
type voters map[aweigh.Hash]PublicKey

func votersOf(keys ...PrivateKey) voters {
	v := make(voters)
	for _, k := range keys {
		v[k.Public().ID()] = k.Public()
	}
	return v
}

func (v voters) Key(id aweigh.Hash) (PublicKey, bool) {
	k, ok := v[id]
	return k, ok
}

func check(b MotionBallot, v Voters) error {
	_, err := CheckMotionBallot(b, home.Network, home.Scope, v, nil)
	return err
}

func TestMotionBallotsOfVotersAreAccepted(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 1)
		for _, comment := range []string{"", "looks right", strings.Repeat("ä", MaxComment/2)} {
			b := motionBallot(t, k, vote(7, Approve), comment)
			back, err := DecodeMotionBallot(b.Encode())
			if err != nil || !bytes.Equal(back.Encode(), b.Encode()) || back.Comment != comment {
				t.Fatalf("%s: %v comes back as %v: %v", name, b, back, err)
			}
			set, err := NewKeySet(k.Public())
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []Voters{votersOf(k), set, newWorld(t, name, 1)} {
				if err := check(back, v); err != nil {
					t.Fatal(err)
				}
			}
			if err := check(back.WithoutComment(), votersOf(k)); err != nil {
				t.Fatalf("without its comment: %v", err)
			}
			if len(b.Encode()) > MaxMotionBallot {
				t.Fatalf("%s: %d bytes", name, len(b.Encode()))
			}
		}
	}
}

// P29: a ballot may be signed at any time, anywhere, so nothing of time or place
// is in it: the same vote gives the same bytes.
func TestP29MotionBallotsNameNoTime(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 1)
		a, b := motionBallot(t, k, vote(7, Reject), "no"), motionBallot(t, k, vote(7, Reject), "no")
		if !bytes.Equal(a.Encode(), b.Encode()) {
			t.Errorf("%s: two ballots from one vote", name)
		}
	}
}

func TestMotionBallotsAreRefusedByConsequence(t *testing.T) {
	k, other := keyOf(t, Ed25519, 1), keyOf(t, Ed25519, 2)
	good := motionBallot(t, k, vote(7, Approve), "yes")
	for _, c := range []struct {
		name   string
		change func(*MotionBallot)
		want   error
	}{
		{"another network", func(b *MotionBallot) { b.Network = fill(9) }, ErrForeign},
		{"another scope", func(b *MotionBallot) { b.Scope = fill(9) }, ErrOtherScope},
		{"another motion", func(b *MotionBallot) { b.Motion = fill(9) }, ErrForged},
		{"another choice", func(b *MotionBallot) { b.Choice = Reject }, ErrForged},
		{"no choice", func(b *MotionBallot) { b.Choice = 3 }, ErrMalformed},
		{"a key that is not in the roster", func(b *MotionBallot) { b.Voter = fill(9) }, ErrNotInRoster},
		{"another voter", func(b *MotionBallot) { b.Voter = other.Public().ID() }, ErrForged},
		{"another comment", func(b *MotionBallot) { b.Comment = "no" }, ErrMalformed},
		{"another comment, and its hash", func(b *MotionBallot) { b.Comment, b.CommentHash = "no", commentOf("no") }, ErrForged},
		{"a comment that is no text", func(b *MotionBallot) { b.Comment = "\xff"; b.CommentHash = commentOf(b.Comment) }, ErrMalformed},
		{"a comment too long", func(b *MotionBallot) {
			b.Comment = strings.Repeat("x", MaxComment+1)
			b.CommentHash = commentOf(b.Comment)
		}, ErrMalformed},
		{"an algorithm of another key", func(b *MotionBallot) { b.Algorithm = COSEMLDSA65 }, ErrForged},
		{"an algorithm unknown", func(b *MotionBallot) { b.Algorithm = -7 }, ErrMalformed},
		{"no signature", func(b *MotionBallot) { b.Signature = nil }, ErrMalformed},
		{"another signature", func(b *MotionBallot) { b.Signature = slices.Clone(b.Signature); b.Signature[5] ^= 1 }, ErrForged},
	} {
		b := good
		c.change(&b)
		set, err := NewKeySet(k.Public(), other.Public(), k.Public())
		if err != nil {
			t.Fatal(err)
		}
		memo := NewMemory(Verify, 9)
		for i, err := range []error{
			check(b, votersOf(k, other)), check(b, set), check(b, newWorld(t, Ed25519, 2)),
			second(CheckMotionBallot(b, home.Network, home.Scope, set, memo.Verify)),
		} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s, keys %d: %v, want %v", c.name, i, err, c.want)
			}
		}
	}
	if _, err := NewKeySet(PublicKey{Scheme: Ed25519}); !errors.Is(err, ErrKey) {
		t.Errorf("a bad key: %v", err)
	}
}

func second(_ CheckedMotionBallot, err error) error { return err }

// What one key signs as a motion ballot passes for nothing else, nor the reverse.
func TestMotionBallotsAreOfTheirOwnKind(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 1)
		b := motionBallot(t, k, vote(7, Approve), "")
		message := b.SigningBytes()
		if message[0] == ContextBallot[0] || message[0] == ContextBundle[0] {
			t.Fatal("a Sig_structure begins like a context")
		}
		for _, ctx := range []Context{ContextBallot, ContextBundle} {
			if err := Verify(k.Public(), ctx, message, b.Signature); !errors.Is(err, ErrForged) {
				t.Errorf("%s: passes in %q: %v", name, ctx, err)
			}
			b.Signature = k.Sign(ctx, message)
			if err := check(b, votersOf(k)); !errors.Is(err, ErrForged) {
				t.Errorf("%s: one of %q passes: %v", name, ctx, err)
			}
		}
	}
}

// The identity covers the content, not the form: P33 counts choices.
func TestMotionBallotsAreNamedByWhatTheySay(t *testing.T) {
	k, other := keyOf(t, Ed25519, 1), keyOf(t, Ed25519, 2)
	b := motionBallot(t, k, vote(7, Approve), "")
	if c := motionBallot(t, k, vote(7, Approve), "with a comment"); c.ID() != b.ID() {
		t.Error("a comment makes another ballot")
	}
	if c := offlineBallot(t, k, vote(7, Approve), ""); c.ID() != b.ID() || !c.Offline {
		t.Error("where it is signed makes another ballot")
	}
	seen := map[aweigh.Hash]bool{b.ID(): true}
	for i, change := range []func(*MotionBallot){
		func(b *MotionBallot) { b.Network = fill(9) },
		func(b *MotionBallot) { b.Scope = fill(9) },
		func(b *MotionBallot) { b.Motion = fill(9) },
		func(b *MotionBallot) { b.Choice = Reject },
		func(b *MotionBallot) { b.Voter = other.Public().ID() },
	} {
		c := b
		change(&c)
		if seen[c.ID()] {
			t.Errorf("change %d makes no other ballot", i)
		}
		seen[c.ID()] = true
	}
}

type brokenSigner struct {
	Signer
	sign func([]byte) ([]byte, error)
}

func (s brokenSigner) SignMessage(m []byte) ([]byte, error) { return s.sign(m) }

func TestSignersAreNotTrusted(t *testing.T) {
	k, other := keyOf(t, Ed25519, 1), keyOf(t, Ed25519, 2)
	gone := errors.New("card removed")
	for _, c := range []struct {
		name string
		sign func([]byte) ([]byte, error)
		want error
	}{
		{"fails", func([]byte) ([]byte, error) { return nil, gone }, gone},
		{"another key", other.Signer().SignMessage, ErrForged},
		{"another message", func(m []byte) ([]byte, error) { return k.Signer().SignMessage(m[1:]) }, ErrForged},
		{"nothing", func([]byte) ([]byte, error) { return nil, nil }, ErrMalformed},
		{"the wrong length", func([]byte) ([]byte, error) { return make([]byte, 63), nil }, ErrForged},
	} {
		if _, err := SignMotionBallot(brokenSigner{k.Signer(), c.sign}, vote(7, Approve), ""); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := SignMotionBallot(k.Signer(), vote(7, 0), ""); !errors.Is(err, ErrMalformed) {
		t.Errorf("no choice: %v", err)
	}
}

// coseVerifier makes go-cose verify with this package's schemes.
type coseVerifier struct{ key PublicKey }

func (v coseVerifier) Algorithm() cose.Algorithm {
	a, err := v.key.Algorithm()
	if err != nil {
		panic(err)
	}
	return cose.Algorithm(a)
}

func (v coseVerifier) Verify(content, signature []byte) error {
	return Verify(v.key, ContextCOSE, content, signature)
}

// TestMotionBallotsAreCOSE reads and writes ballots with go-cose.
func TestMotionBallotsAreCOSE(t *testing.T) {
	for _, name := range schemes {
		k := keyOf(t, name, 1)
		coseReadsAndWrites(t, k, motionBallot(t, k, vote(7, Approve), "yes"))
		coseReadsAndWrites(t, k, offlineBallot(t, k, vote(7, Approve), "yes"))
	}
}

func coseReadsAndWrites(t *testing.T, k PrivateKey, b MotionBallot) {
	t.Helper()
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(b.Encode()); err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(nil, coseVerifier{k.Public()}); err != nil {
		t.Fatalf("%s: %v", k.Public().Scheme, err)
	}
	if k.Public().Scheme == Ed25519 {
		v, err := cose.NewVerifier(cose.AlgorithmEdDSA, ed25519Public(k.Public().Bytes))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(nil, v); err != nil {
			t.Fatalf("the standard library's Ed25519: %v", err)
		}
	}
	if b.Signature[3] ^= 1; coseVerify(b, k) == nil {
		t.Fatalf("%s: go-cose accepts another signature", k.Public().Scheme)
	}
	b.Signature[3] ^= 1
	payload, err := cbor.Marshal([]any{1, b.Network[:], b.Scope[:], b.Motion[:], 1, b.Voter[:], b.CommentHash[:]})
	if err != nil {
		t.Fatal(err)
	}
	protected := cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm:   cose.Algorithm(b.Algorithm),
		cose.HeaderLabelContentType: MotionContentType,
		cose.HeaderLabelKeyID:       b.Voter[:],
	}
	if b.Offline {
		protected["offline"] = true
	}
	built := cose.Sign1Message{
		Headers: cose.Headers{
			Protected:   protected,
			Unprotected: cose.UnprotectedHeader{"comment": "yes"},
		},
		Payload:   payload,
		Signature: b.Signature,
	}
	if raw, err := built.MarshalCBOR(); err != nil || !bytes.Equal(raw, b.Encode()) {
		t.Fatalf("%s: go-cose writes\n%x, not\n%x: %v", k.Public().Scheme, raw, b.Encode(), err)
	}
}

func coseVerify(b MotionBallot, k PrivateKey) error {
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(b.Encode()); err != nil {
		return err
	}
	return m.Verify(nil, coseVerifier{k.Public()})
}

// TestOthersCanCheckMotionBallots gives a bundle to a program in Python that
// shares nothing with this one.
func TestOthersCanCheckMotionBallots(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import cbor2, cryptography").Run() == nil {
			python = p
		}
	}
	if python == "" {
		t.Skip("needs python3 with cbor2 and cryptography (Debian: apt-get install python3-cbor2 python3-cryptography)")
	}
	var keys, want string
	var ballots []MotionBallot
	for i, name := range []string{Ed25519, Ed448, MLDSA65, Ed25519} {
		k := keyOf(t, name, byte(i+1))
		b := offlineBallot(t, k, vote(7, Choice(1+i%2)), fmt.Sprint("comment ", i))
		verdict := map[string]string{Ed25519: "good", Ed448: "good", MLDSA65: "unknown algorithm"}[name]
		if i == 3 {
			b.Signature[9] ^= 1
			verdict = "bad"
		}
		keys += fmt.Sprintf("%s %s %x\n", b.Voter, name, k.Public().Bytes)
		want += fmt.Sprintf("%s %s %s offline comment %d\n", b.Voter, b.Choice, verdict, i)
		ballots = append(ballots, b)
	}
	bundle, list := filepath.Join(t.TempDir(), "votes.ballot"), filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(bundle, AppendMotionBallots(nil, ballots...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := exec.CommandContext(t.Context(), python, "testdata/check_ballots.py", bundle, list).CombinedOutput()
	if err != nil || string(got) != want {
		t.Fatalf("%v: it says\n%s, not\n%s", err, got, want)
	}
}

// TestOneAcceptSetOfEd25519: signatures and keys on which verifiers are known to
// differ are judged by the one verifier of the package, whatever they sign.
func TestOneAcceptSetOfEd25519(t *testing.T) {
	small, _ := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")  // a point of order 8
	beyond, _ := hex.DecodeString("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f") // 1, not reduced
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")  // of the group
	k := keyOf(t, Ed25519, 1)
	good := motionBallot(t, k, vote(7, Approve), "")
	malleable := slices.Clone(good.Signature)
	carry := 0
	for i := range order {
		carry += int(malleable[32+i]) + int(order[i])
		malleable[32+i] = byte(carry)
		carry >>= 8
	}
	zero := append(slices.Clone(small), make([]byte, 32)...)
	for _, key := range [][]byte{k.Public().Bytes, small, beyond, make([]byte, 32)} {
		for _, signature := range [][]byte{good.Signature, malleable, zero, make([]byte, 64)} {
			p := PublicKey{Scheme: Ed25519, Bytes: key}
			b := good
			b.Voter, b.Signature = p.ID(), signature
			want := Verify(p, ContextCOSE, b.SigningBytes(), signature)
			if err := check(b, voters{p.ID(): p}); (err == nil) != (want == nil) {
				t.Errorf("key %x, signature %x: %v, the verifier says %v", key, signature, err, want)
			}
		}
	}
	good.Signature = malleable
	if err := check(good, votersOf(k)); !errors.Is(err, ErrForged) {
		t.Errorf("a second signature from the first: %v", err)
	}
}

func TestMotionBallotsBearNoChange(t *testing.T) {
	b := motionBallot(t, keyOf(t, Ed25519, 1), vote(7, Approve), "yes")
	k := votersOf(keyOf(t, Ed25519, 1))
	raw := b.Encode()
	for i := range raw {
		for bit := range 8 {
			bent := slices.Clone(raw)
			bent[i] ^= 1 << bit
			c, err := DecodeMotionBallot(bent)
			if err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatal(err)
				}
				continue
			}
			if check(c, k) == nil {
				t.Fatalf("bit %d of byte %d: still good", bit, i)
			}
		}
		if _, err := DecodeMotionBallot(raw[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := DecodeMotionBallot(append(raw, 0)); !errors.Is(err, ErrMalformed) {
		t.Fatalf("a byte more: %v", err)
	}
}

// TestMotionBallotsHaveOneForm puts ballots together in other ways that COSE and
// CBOR allow, or with a field twice.
func TestMotionBallotsHaveOneForm(t *testing.T) {
	b := motionBallot(t, keyOf(t, Ed25519, 1), vote(7, Approve), "")
	type parts struct {
		tag, protected, unprotected, payload, signature []byte
	}
	build := func(p parts) []byte {
		raw := canon.AppendHead(slices.Clone(p.tag), canon.MajorArray, 4)
		raw = append(appendBytes(raw, p.protected), p.unprotected...)
		return appendBytes(appendBytes(raw, p.payload), p.signature)
	}
	whole := parts{[]byte{tagSign1}, b.appendProtected(nil), []byte{0xa0}, b.appendPayload(nil), b.Signature}
	if !bytes.Equal(build(whole), b.Encode()) {
		t.Fatal("the test builds something else")
	}
	other := b
	other.Voter = fill(9)
	unsorted := canon.AppendHead(nil, canon.MajorMap, 3)
	unsorted = append(append(unsorted, labelKeyID), appendHash(nil, &b.Voter)...)
	unsorted = append(append(unsorted, labelAlgorithm), canon.AppendHead(nil, canon.MajorNegative, 7)...)
	unsorted = appendText(append(unsorted, labelContentType), MotionContentType)
	for name, change := range map[string]func(*parts){
		"no tag":                       func(p *parts) { p.tag = nil },
		"another tag":                  func(p *parts) { p.tag[0]++ },
		"a long tag":                   func(p *parts) { p.tag = []byte{0xd8, 18} },
		"kid of another voter":         func(p *parts) { p.protected = other.appendProtected(nil) },
		"more in the protected header": func(p *parts) { p.protected = append(p.protected, 0) },
		"unsorted header":              func(p *parts) { p.protected = unsorted },
		"no header":                    func(p *parts) { p.protected = nil },
		"a header beside":              func(p *parts) { p.unprotected = []byte{0xa1, 0x04, 0x40} },
		"an empty comment":             func(p *parts) { p.unprotected = appendText(appendText([]byte{0xa1}, labelComment), "") },
		"a comment as bytes":           func(p *parts) { p.unprotected = appendBytes(appendText([]byte{0xa1}, labelComment), []byte("x")) },
		"an endless map":               func(p *parts) { p.unprotected = []byte{0xbf, 0xff} },
		"more in the payload":          func(p *parts) { p.payload = append(p.payload, 0) },
		"less in the payload":          func(p *parts) { p.payload = p.payload[:len(p.payload)-1] },
		"no payload":                   func(p *parts) { p.payload = nil },
		"another format":               func(p *parts) { p.payload[1]++ },
		"no signature":                 func(p *parts) { p.signature = nil },
	} {
		p := whole
		p.tag, p.protected, p.payload = slices.Clone(p.tag), slices.Clone(p.protected), slices.Clone(p.payload)
		change(&p)
		if _, err := DecodeMotionBallot(build(p)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeMotionBallot(f *testing.F) {
	for _, name := range schemes {
		for _, comment := range []string{"", "yes"} {
			b := motionBallot(f, keyOf(f, name, 1), vote(7, Approve), comment)
			f.Add(b.Encode())
			b = offlineBallot(f, keyOf(f, name, 1), vote(7, Approve), comment)
			f.Add(b.Encode())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeMotionBallot(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(b.Encode(), data) {
			t.Fatalf("%x is another encoding of %x", data, b.Encode())
		}
		if err := cbor.Wellformed(data); err != nil {
			t.Fatalf("%x is not CBOR: %v", data, err)
		}
	})
}

// TestMotionBallotsOfAllKindsComeBack draws the fields.
func TestMotionBallotsOfAllKindsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := func(name string) aweigh.Hash {
			return aweigh.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
		}
		b := MotionBallot{
			MotionVote: MotionVote{hash("network"), hash("scope"), hash("motion"), rapid.SampledFrom([]Choice{Approve, Reject}).Draw(t, "choice")},
			Voter:      hash("voter"), CommentHash: hash("comment hash"),
			Algorithm: rapid.SampledFrom([]Algorithm{EdDSA, COSEMLDSA65}).Draw(t, "algorithm"),
			Signature: rapid.SliceOfN(rapid.Byte(), 1, maxSignature).Draw(t, "signature"),
			Offline:   rapid.Bool().Draw(t, "offline"),
		}
		if c := rapid.StringN(0, 300, MaxComment).Draw(t, "comment"); c != "" {
			b.Comment, b.CommentHash = c, commentOf(c)
		}
		back, err := DecodeMotionBallot(b.Encode())
		if err != nil || fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", b) || !bytes.Equal(back.Encode(), b.Encode()) {
			t.Fatalf("%+v comes back as %+v: %v", b, back, err)
		}
		var m cose.Sign1Message
		if err := m.UnmarshalCBOR(b.Encode()); err != nil {
			t.Fatalf("go-cose: %v", err)
		}
	})
}

// motionVector is all that another implementation needs to compare itself with.
type motionVector struct {
	Scheme    string      `json:"scheme"`
	Seed      string      `json:"seed"` // all byte strings are hexadecimal
	Public    PublicKey   `json:"public"`
	Voter     aweigh.Hash `json:"voter"`
	Network   aweigh.Hash `json:"network"`
	Scope     aweigh.Hash `json:"scope"`
	Motion    aweigh.Hash `json:"motion"`
	Choice    string      `json:"choice"`
	Comment   string      `json:"comment"`
	Offline   bool        `json:"offline"`
	Signing   string      `json:"sig_structure"`
	Signature string      `json:"signature"`
	ID        aweigh.Hash `json:"id"`
	Ballot    string      `json:"ballot"`
}

// The vectors pin every byte: a change here is a change of the protocol.
func TestMotionBallotsMatchTheVectors(t *testing.T) {
	var all []motionVector
	for i, name := range append(slices.Clone(schemes), Ed25519) {
		k := keyOf(t, name, byte(i+1))
		b := motionBallot(t, k, vote(7, Choice(1+i%2)), []string{"", "für später", "no", "from the train"}[i])
		if i == len(schemes) {
			b = offlineBallot(t, k, b.MotionVote, b.Comment)
		}
		all = append(all, motionVector{
			Scheme: name, Seed: hex.EncodeToString(k.s().seed), Public: k.Public(), Voter: b.Voter,
			Network: b.Network, Scope: b.Scope, Motion: b.Motion, Choice: b.Choice.String(), Comment: b.Comment, Offline: b.Offline,
			Signing: hex.EncodeToString(b.SigningBytes()), Signature: hex.EncodeToString(b.Signature),
			ID: b.ID(), Ballot: hex.EncodeToString(b.Encode()),
		})
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/motion-ballots.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(want), got) {
		t.Errorf("ballots differ from %s; if the protocol is meant to change, run go test ./votes -update", file)
	}
}
