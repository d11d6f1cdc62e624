// Package founding makes networks, and nodes that join them.
package founding

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Anchor is the data that the founders of a network must have of each other.
type Anchor struct {
	Name      string
	Key       votes.PublicKey // signs ballots
	Peer      machine.Peer
	Addresses []string // multiaddrs without /p2p/; may be empty for all but one
}

// Vacant reports why no node can be founded in a directory, if there is one.
func Vacant(dir home.Dir) error {
	if dir.Exists() {
		return fmt.Errorf("%w: %s; a directory holds one node for good, use another --data-dir", home.ErrThere, dir.Genesis())
	}
	return nil
}

// Self makes the keys of a node that has none, and returns its Anchor.
func Self(dir home.Dir, s home.Settings) (Anchor, error) {
	identity, err := dir.NewKey(dir.Identity())
	if err != nil {
		return Anchor{}, err
	}
	key, err := dir.NewKey(dir.Anchor())
	if err != nil {
		return Anchor{}, err
	}
	peer, err := machine.PeerOf(identity)
	if err != nil {
		return Anchor{}, err
	}
	a := Anchor{Name: s.Name, Key: key.Public(), Peer: peer}
	if a.Name == "" {
		a.Name = "anchor-" + key.Public().ID().Short()
	}
	addresses := s.Announce
	if len(addresses) == 0 {
		addresses = s.Listen
	}
	for _, text := range addresses {
		if addr, err := ma.NewMultiaddr(text); err == nil && diallable(addr) {
			a.Addresses = append(a.Addresses, text)
		}
	}
	return a, nil
}

// diallable reports whether an address can be dialled.
func diallable(a ma.Multiaddr) bool {
	_, where, err := manet.DialArgs(a)
	return err != nil || !manet.IsIPUnspecified(a) && !strings.HasSuffix(where, ":0")
}

// Line is the anchor as one line of a YAML list.
func (a Anchor) Line() (string, error) {
	if strings.ContainsAny(a.Name, "\"\\\n") {
		return "", fmt.Errorf("founding: the name %q holds quotes or line breaks", a.Name)
	}
	return fmt.Sprintf("- {name: %q, key: %q, peer: %q, addresses: [%s]}", a.Name, a.Key, a.Peer, quoted(a.Addresses)), nil
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ", ")
}

// ErrAnchors is wrapped by errors about a list of anchors.
var ErrAnchors = errors.New("founding: not a list of anchors")

// ErrGenesis means that a file does not hold a genesis.
var ErrGenesis = errors.New("founding: not a genesis")

// ReadAnchors reads a YAML list of what Line writes. Errors wrap ErrAnchors, but
// those of reading the file.
func ReadAnchors(path string) ([]Anchor, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("founding: %w", err)
	}
	// The parser reads maps, so the list becomes the one value of a map.
	m, err := yaml.Parser().Unmarshal(append([]byte("anchors:\n"), raw...))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrAnchors, path, err)
	}
	list, _ := m["anchors"].([]any)
	anchors := make([]Anchor, len(list))
	for i, item := range list {
		if anchors[i], err = anchorOf(item); err != nil {
			return nil, fmt.Errorf("%w: %s: anchor %d: %w", ErrAnchors, path, i+1, err)
		}
	}
	if len(anchors) == 0 {
		return nil, fmt.Errorf("%w: %s is empty", ErrAnchors, path)
	}
	return anchors, nil
}

func anchorOf(item any) (a Anchor, err error) {
	fields, ok := item.(map[string]any)
	if !ok {
		return a, errors.New("it is not of the form {name: …, key: …, peer: …, addresses: […]}")
	}
	for name, value := range fields {
		text, isText := value.(string)
		switch {
		case name == "addresses":
			list, ok := value.([]any)
			if !ok {
				return a, errors.New("addresses is not a list")
			}
			for _, v := range list {
				if _, err := ma.NewMultiaddr(fmt.Sprint(v)); err != nil {
					return a, fmt.Errorf("address %q: %w", v, err)
				}
				a.Addresses = append(a.Addresses, fmt.Sprint(v))
			}
		case !isText:
			return a, fmt.Errorf("%s is not a text", name)
		case name == "name":
			a.Name = text
		case name == "key":
			if a.Key, err = votes.ParsePublicKey(text); err != nil {
				return a, err
			}
		case name == "peer":
			a.Peer = machine.Peer(text)
		default:
			return a, fmt.Errorf("unknown field %q", name)
		}
	}
	if machine.AuthorOf(a.Peer).IsZero() || a.Key.Scheme == "" {
		return a, errors.New("key or peer is missing or wrong")
	}
	return a, nil
}

// Plan is how a founder's node is made.
type Plan struct {
	Dir      home.Dir
	Settings home.Settings
	Self     Anchor
	Network  string // name
	Mode     quorum.Mode
	Policy   *scope.Policy // nil: the default of the mode
	Anchors  string        // file with all founders; empty: this node alone
	Genesis  string        // file with the genesis, made by another founder; empty: make it
	Now      aweigh.Instant
}

// Found writes the genesis and the settings.
func (p Plan) Found() (g scope.Genesis, err error) {
	anchors := []Anchor{p.Self}
	if p.Anchors != "" {
		if anchors, err = ReadAnchors(p.Anchors); err != nil {
			return g, err
		}
	}
	if g, err = p.genesis(anchors); err != nil {
		return g, err
	}
	member := false
	for _, a := range g.Anchors {
		member = member || a.Key.ID() == p.Self.Key.ID()
	}
	if !member {
		return g, fmt.Errorf("%w: this node's key is not among them; its line is the one of --anchor-info", ErrAnchors)
	}
	p.Settings.Name = p.Self.Name
	for _, a := range anchors {
		for _, addr := range a.Addresses {
			if a.Peer != p.Self.Peer {
				p.Settings.Bootstrap = append(p.Settings.Bootstrap, addr+"/p2p/"+string(a.Peer))
			}
		}
	}
	if err := Vacant(p.Dir); err != nil {
		return g, err
	}
	if err := p.Dir.SaveSettings(p.Settings); err != nil {
		return g, err
	}
	return g, p.Dir.SaveGenesis(g) // last: with it the node is there
}

// ReadGenesis reads the genesis that another founder made. Errors wrap ErrGenesis, or are those of the file.
func ReadGenesis(path string) (scope.Genesis, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return scope.Genesis{}, fmt.Errorf("founding: %w", err)
	}
	g, err := scope.DecodeGenesis(raw)
	if err != nil {
		err = fmt.Errorf("%w: %s: it is empty, damaged, cut off or something else: %w", ErrGenesis, path, err)
	}
	return g, err
}

func (p Plan) genesis(anchors []Anchor) (scope.Genesis, error) {
	if p.Genesis != "" {
		return ReadGenesis(p.Genesis)
	}
	founders := make([]machine.Founder, len(anchors))
	for i, a := range anchors {
		founders[i] = machine.Founder{Name: a.Name, Key: a.Key, Peer: a.Peer}
	}
	policy := scope.DefaultPolicy(p.Mode)
	if p.Policy != nil {
		policy = *p.Policy
	}
	g, err := machine.NewGenesis(p.Network, p.Now, policy, founders...)
	if err != nil && p.Anchors != "" {
		err = fmt.Errorf("%w: %s: %w", ErrAnchors, p.Anchors, err)
	}
	return g, err
}

// Join makes an observer of the network of an invite: its key, the genesis,
// fetched from the peers that the invite names and checked, and the settings,
// which it returns. A node that is there already is left as it is, if it
// belongs to the same network. If no genesis is found, or fits refuses it, nothing
// stays that was not there before.
func Join(
	ctx context.Context, dir home.Dir, s home.Settings, invite node.Invite, fits func(scope.Genesis) error,
) (home.Settings, error) {
	if dir.Exists() {
		g, err := dir.ReadGenesis()
		if err == nil && g.Hash() != invite.Network {
			err = fmt.Errorf("founding: %s holds a node of network %s", dir, g.Hash().Short())
		}
		return s, err
	}
	_, absent := os.Stat(dir.Identity())
	identity, err := dir.NewKey(dir.Identity())
	if err != nil {
		return s, err
	}
	if s.Name == "" {
		s.Name = "observer-" + identity.Public().ID().Short()
	}
	g, err := node.FetchGenesis(ctx, identity, invite, s.Name)
	if err == nil {
		err = fits(g)
	}
	if err != nil {
		if errors.Is(absent, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(dir.Identity()))
			_ = os.Remove(string(dir)) // if nothing else is in it
		}
		return s, err
	}
	s.Bootstrap = append(s.Bootstrap, invite.Peers...)
	if err := dir.SaveSettings(s); err != nil {
		return s, err
	}
	return s, dir.SaveGenesis(g)
}

// Admit has a node that is there admitted as an observer by an invite. Errors wrap node.ErrNotAdmitted if that is
// refused.
func Admit(ctx context.Context, dir home.Dir, s home.Settings, invite node.Invite) error {
	identity, _, err := dir.Keys()
	if err == nil {
		_, err = node.FetchGenesis(ctx, identity, invite, s.Name)
	}
	return err
}
