package sim

// newAttack makes the attack of a name, for one coalition.
func newAttack(name string) attack {
	switch name {
	case "equivocate":
		return &equivocate{}
	case "fork":
		return &fork{}
	case "rival":
		return &rival{}
	case "withhold":
		return &withhold{}
	case "mute":
		return &mute{}
	case "delay":
		return &delayed{}
	case "replay":
		return &replay{}
	case "garbage":
		return &garbage{}
	case "censor":
		return &censor{}
	case "rewrite":
		return &rewrite{}
	case "clock":
		return &badClock{}
	case "flood":
		return &flood{}
	case "stale":
		return &stale{}
	case "slander":
		return &slander{}
	case "amnesia":
		return &amnesia{}
	case "defeat":
		return &defeat{}
	}
	switch name {
	case "mutiny":
		return &mutiny{}
	case "stubborn":
		return &stubborn{}
	case "forge":
		return &forging{}
	case "interject":
		return &interject{}
	case "pose":
		return &pose{}
	case "invent":
		return &invent{}
	case "divide":
		return &divide{}
	}
	if p := newTrustAttack(name); p != nil {
		return p
	}
	if p := newBallotAttack(name); p != nil {
		return p
	}
	if name != "twins" {
		panic("sim: an attack without code: " + name) // a scenario names only those in scenario.Attacks
	}
	return &twins{}
}

// newTrustAttack makes the attacks that are about trust, nil for others.
func newTrustAttack(name string) attack {
	switch name {
	case "omit":
		return &omit{}
	case "sybil":
		return &sybil{}
	case "whitewash":
		return &whitewash{}
	case "shirk":
		return &shirk{}
	case "farm":
		return &farm{}
	case "usurp":
		return &usurp{}
	}
	return nil
}
