package policytext

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/scope"
)

// PartitionHelp states how partitions are written.
const PartitionHelp = `On keys with the prefix, anchors that have no quorum for the time after= decide provisionally, if they
have share= of the whole weight, which is more than 1/3. Once there is a quorum, the scope waits for other
islands for the time gather=, then takes what they decided as far as nothing was changed that they found,
and opens motions about the rest, for the time window=. No approval covers keys of a partition.`

const partitionLike = "prefix=/ship/ share=2/5 after=10m gather=1m window=168h"

// writePartitions writes the section of a policy.
func writePartitions(b *strings.Builder, all []scope.Partition) {
	fmt.Fprintf(b, "\n# Where anchors without a quorum may decide provisionally, as in:  - %s\n# %s\n", partitionLike,
		strings.ReplaceAll(PartitionHelp, "\n", "\n# "))
	if len(all) == 0 {
		b.WriteString("partitions: []\n")
		return
	}
	b.WriteString("partitions:\n")
	for i := range all {
		fmt.Fprintf(b, "  - %s\n", scalar(writePartition(&all[i])))
	}
}

func writePartition(p *scope.Partition) string {
	words := []string{"prefix=" + quoted(string(p.Prefix))}
	if p.Island {
		words = append(words, "island=true")
	}
	if p.Num != 0 || p.Den != 0 {
		words = append(words, fmt.Sprintf("share=%d/%d", p.Num, p.Den))
	}
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"after", p.After}, {"gather", p.Gather}, {"window", p.Window}} {
		if d.is != 0 {
			words = append(words, d.name+"="+d.is.String())
		}
	}
	return strings.Join(words, " ")
}

// ParsePartition reads one partition: words like prefix=/ship/, in any order. Errors wrap ErrSyntax; scope.Policy.Check
// checks whether a scope can have it.
func ParsePartition(text string) (p scope.Partition, err error) {
	seen := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] || value == "" {
			return p, fmt.Errorf("%w: partition: %q stands twice, or is not a word like prefix=/ship/", ErrSyntax, word)
		}
		seen[key] = true
		if err := partitionWord(&p, key, value); err != nil {
			return p, fmt.Errorf("%w: partition: %s: %w", ErrSyntax, word, err)
		}
	}
	for _, need := range []string{"prefix", "share", "after", "gather", "window"} {
		if !seen[need] && !p.Island {
			return p, fmt.Errorf("%w: partition: it needs %s=…, as in: %s", ErrSyntax, need, partitionLike)
		}
	}
	return p, nil
}

func partitionWord(p *scope.Partition, key, value string) (err error) {
	switch key {
	case "prefix":
		prefix, err := unquoted(value)
		p.Prefix = []byte(prefix)
		return err
	case "share":
		p.Num, p.Den, err = part(value)
	case "after":
		p.After, err = span(value)
	case "gather":
		p.Gather, err = span(value)
	case "window":
		p.Window, err = span(value)
	case "island":
		p.Island, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("it has no %s%s", key, meant(key, []string{"prefix", "share", "after", "gather", "window"}))
	}
	return err
}

const partitionField = "partitions."

// diffPartitions lists the partitions that differ.
func diffPartitions(from, to []scope.Partition) (changes []Change) {
	var prefixes []string
	texts := func(all []scope.Partition) map[string]string {
		out := make(map[string]string, len(all))
		for i := range all {
			prefix := string(all[i].Prefix)
			out[prefix] = writePartition(&all[i])
			prefixes = append(prefixes, prefix)
		}
		return out
	}
	was, is := texts(from), texts(to)
	slices.Sort(prefixes)
	for _, prefix := range slices.Compact(prefixes) {
		a, b := was[prefix], is[prefix]
		if a == b {
			continue
		}
		if a == "" {
			a = absent
		}
		if b == "" {
			b = absent
		}
		changes = append(changes, Change{partitionField + strconv.Quote(prefix), a, b, "where anchors without a quorum may decide provisionally"})
	}
	return changes
}

// applyPartition makes the change of a partition.
func applyPartition(all []scope.Partition, c *Change) ([]scope.Partition, error) {
	text := c.To
	if text == absent {
		text = c.From
	}
	p, err := ParsePartition(text)
	if err != nil {
		return nil, err
	}
	at, found := slices.BinarySearchFunc(all, p.Prefix, func(q scope.Partition, prefix []byte) int { return bytes.Compare(q.Prefix, prefix) })
	all = slices.Clone(all)
	switch {
	case c.To == absent && found:
		return slices.Delete(all, at, at+1), nil
	case c.To == absent:
		return all, nil
	case found:
		all[at] = p
		return all, nil
	}
	return slices.Insert(all, at, p), nil
}

// partitions reads the list of them, in any order.
func partitions(n *yaml.Node) (all []scope.Partition, err error) {
	texts, err := lines(n, "partitions", partitionLike)
	for _, text := range texts {
		p, err := ParsePartition(text.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", text.Line, err)
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b scope.Partition) int { return bytes.Compare(a.Prefix, b.Prefix) })
	return all, err
}

// oddPartitions warns of the partitions that a policy has and another has not.
func oddPartitions(from, to *scope.Policy) (all []string) {
	for i := range to.Partitions {
		p := &to.Partitions[i]
		if slices.ContainsFunc(from.Partitions, func(q scope.Partition) bool { return writePartition(&q) == writePartition(p) }) {
			continue
		}
		if 2*p.Num < p.Den {
			all = append(all, fmt.Sprintf("an island of %d/%d of the weight decides by less than a third of it, so anchors that lie, as few as the scope tolerates, "+
				"could make one up, and bring writes back that authors signed for it; share=1/2 excludes that", p.Num, p.Den))
		}
		if len(p.Prefix) > 0 && p.Prefix[0] != '/' {
			all = append(all, fmt.Sprintf("the partition of %q covers no key that begins with a slash, as most do; did you mean prefix=%s?", p.Prefix, quoted("/"+string(p.Prefix))))
		}
	}
	return all
}
