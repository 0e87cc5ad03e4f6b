package config

// agentKeys are the settings of agent definitions that the hub runs itself.
var agentKeys = []Key{
	{
		Name: "agents.hosted", Default: "false",
		Meaning: "run agent definitions (POST /hpd/agents) in this process, with the providers' keys of its environment; it spends money",
		field:   func(c *Config) any { return &c.Agents.Hosted },
	},
	{
		Name: "agents.runs", Default: "16",
		Meaning: "runs of definitions at once",
		field:   func(c *Config) any { return &c.Agents.Runs },
	},
	{
		Name: "agents.tokens", Default: "0", Zero: true,
		Meaning: "tokens that each definition may use in all, across restarts; 0 is without limit",
		field:   func(c *Config) any { return &c.Agents.Tokens },
	},
	{
		Name: "agents.money", Default: "0",
		Meaning: "dollars that each definition may spend in all, as 2.50; 0 is without limit. It needs agents.price_input and agents.price_output",
		field:   func(c *Config) any { return &c.Agents.Money }, check: checkDollars,
	},
	{
		Name: "agents.turns", Default: "0", Zero: true,
		Meaning: "turns that each definition may take in all; 0 is without limit",
		field:   func(c *Config) any { return &c.Agents.Turns },
	},
	{
		Name: "agents.time", Default: "0s", Zero: true,
		Meaning: "how long each definition may be asked, from its first turn on; 0 is without limit",
		field:   func(c *Config) any { return &c.Agents.Time },
	},
	{
		Name: "agents.price_input", Default: "0",
		Meaning: "dollars that a million tokens cost which a model reads",
		field:   func(c *Config) any { return &c.Agents.PriceInput }, check: checkDollars,
	},
	{
		Name: "agents.price_output", Default: "0",
		Meaning: "dollars that a million tokens cost which a model writes",
		field:   func(c *Config) any { return &c.Agents.PriceOutput }, check: checkDollars,
	},
}
