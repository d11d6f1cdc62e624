package bench

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantilesAreThoseOfTheSortedDurationsUpToABucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 200).Draw(t, "durations")
		var parts [2]Histogram
		for i, d := range durations {
			parts[i%2].add(time.Duration(d))
		}
		h := parts[0]
		h.merge(&parts[1])
		slices.Sort(durations)
		for _, per := range []int{1, 500, 900, 999, 1000} {
			want := durations[(len(durations)*per+999)/1000-1]
			got := int64(h.Quantile(uint64(per), 1000))
			if got < want || float64(got-want) > float64(want)/perOctave+1 {
				t.Fatalf("%d of 1000 of %v: got %d, want %d", per, durations, got, want)
			}
		}
		if h.Max() != time.Duration(durations[len(durations)-1]) || h.count != uint64(len(durations)) {
			t.Fatalf("max %d, count %d", h.Max(), h.count)
		}
	})
}

func TestEmptyHistogramsHaveNoQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(1, 2) != 0 || h.Max() != 0 {
		t.Error("something of nothing")
	}
}

func TestAddingAllocatesNothing(t *testing.T) {
	h := new(Histogram)
	if n := testing.AllocsPerRun(100, func() { h.add(12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestConfigsAreChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"key too short":        {KeySize: 8},
		"negative clients":     {Clients: -1},
		"unknown distribution": {Distribution: "other"},
		"negative time":        {Duration: -1},
		"prefix too long":      {Prefix: strings.Repeat("p", 1010)},
		"key without a number": {Prefix: strings.Repeat("p", 20), KeySize: 35},
		"value too large":      {ValueSize: 1 << 30},
	} {
		if err := c.check(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	c := Config{Clients: 2}
	if err := c.check(); err != nil || c.Connections != 2 || c.Duration == 0 || c.Distribution != Uniform {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestKeysAreDistinctAndOfTheirSize(t *testing.T) {
	c := Config{Prefix: "/other/", KeySize: 23}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	key := c.key()
	seen := make(map[string]bool)
	for n := range uint64(1000) {
		c.number(key, n*997)
		seen[string(key)] = true
	}
	if len(seen) != 1000 || len(key) != 23 || string(key[:7]) != "/other/" {
		t.Errorf("%d keys like %q", len(seen), key)
	}
}
