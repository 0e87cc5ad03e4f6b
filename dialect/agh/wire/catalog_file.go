package wire

import (
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// MaxCatalog is how many capabilities one catalog lists.
const MaxCatalog = 1000

// capabilityMembers are what an author may write; the digest is computed.
var capabilityMembers = map[string]bool{
	"id": true, "summary": true, "outcome": true, "version": true, "context_needed": true, "artifacts_expected": true,
	"execution_outline": true, "constraints": true, "examples": true, "requirements": true,
}

// ParseCatalog reads the catalog that an author writes: an object with the
// list `capabilities`. Unknown members, a digest and doubled ids are errors.
// What it returns is normalized.
func ParseCatalog(text []byte) ([]CapabilityDoc, error) {
	if err := jsonscan.Check(text, MaxDepth); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the catalog is not valid JSON: %v", err)
	}
	for name := range jsonscan.Members(text) {
		if string(name) != "capabilities" {
			return nil, fault.New(fault.Invalid, "the catalog has the member %.100q; it is an object with the list `capabilities` and nothing else", name)
		}
	}
	list := jsonscan.Member(text, "capabilities")
	if list == nil || list[0] != '[' {
		return nil, fault.New(fault.Invalid, "a catalog is an object with the list `capabilities`")
	}
	catalog, seen := []CapabilityDoc{}, map[string]bool{}
	for entry := range jsonscan.Elements(list) {
		if entry[0] != '{' {
			return nil, fault.New(fault.Invalid, "capability %d is not an object", len(catalog)+1)
		}
		for name := range jsonscan.Members(entry) {
			if !capabilityMembers[string(name)] {
				return nil, fault.New(fault.Invalid, "capability %d has the member %q, which a catalog does not take", len(catalog)+1, name)
			}
		}
		doc, rejection := readCapabilityDoc(entry, "")
		if rejection != nil {
			return nil, fault.Wrap(fault.Invalid, rejection, "capability %d: %s", len(catalog)+1, rejection.Detail)
		}
		normal := doc.Normalized()
		if seen[normal.ID] {
			return nil, fault.New(fault.Invalid, "the capability %q is listed twice", normal.ID)
		}
		if len(catalog) == MaxCatalog {
			return nil, fault.New(fault.TooLarge, "the catalog has more than %d capabilities", MaxCatalog)
		}
		seen[normal.ID] = true
		catalog = append(catalog, normal)
	}
	return catalog, nil
}
