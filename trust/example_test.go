package trust_test

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/trust"
)

func ExampleDefaultParams() {
	fmt.Printf("%+v\n", trust.DefaultParams())
	// Output: {_:{} Floor:100 Ceiling:1000 Initial:100000 Gain:31250 Decay:64 Absence:16 Rest:50000 Lead:2000 Idle:8000 Whole:64 Blame:16 With:64 Against:32 Silent:64 Judged:4 Contest:1/10 Answer:1/8 Reversal:8 Share:0/0 Sponsored:1/4 Churn:1/10 Probation:4 Surety:4 SuretyEpochs:64 Group:{_:{} Least:0 Most:0 Tolerates:0 Load:0 Replace:0}}
}

func ExampleLedger_ApplyExplained() {
	p := trust.DefaultParams()
	a := aweigh.Sum([]byte("key of an anchor"))
	ledger, changes := trust.Ledger{}.ApplyExplained(p,
		trust.Evidence{Anchor: a, Kind: trust.Founded, Score: 500_000},
		trust.Evidence{Anchor: a, Kind: trust.Equivocated, Epoch: 2, Height: 40, Proof: aweigh.Sum([]byte("proof"))},
	)
	for _, c := range changes {
		fmt.Println(c)
	}
	s, _ := ledger.Standing(a)
	fmt.Println(s.Score, s.Barred)
	// Output:
	// epoch 0: 04f2a4f1 0 -> 500000: founded: the genesis gives 500000
	// epoch 2: 04f2a4f1 500000 -> 0: equivocated: two conflicting ballots, proof c1cda263; barred until readmitted
	// 0 true
}
