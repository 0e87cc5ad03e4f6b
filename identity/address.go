package identity

import "strings"

const addressScheme = "hub://"

// Address is where an identity lives: another hub, or this one if Hub is empty.
type Address struct {
	Hub   string
	Agent string
}

// ParseAddress splits hub://h/a. Text of any other form is a plain id.
func ParseAddress(text string) Address {
	if rest, ok := strings.CutPrefix(text, addressScheme); ok {
		if hub, agent, ok := strings.Cut(rest, "/"); ok && hub != "" && agent != "" {
			return Address{Hub: hub, Agent: agent}
		}
	}
	return Address{Agent: text}
}

func (a Address) String() string {
	if a.Hub == "" {
		return a.Agent
	}
	return addressScheme + a.Hub + "/" + a.Agent
}
