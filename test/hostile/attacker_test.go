package hostile

const attackerEnv = "AWEIGH_HOSTILE_PLAN"

func attack(string) int { return 0 }
