package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"feedbox/tests/spec/steps"
)

// relayBehavior is the part of a recording of relays that concerns one key, as lines of
// RelayTrace.tla. Steps of the recording are in the order of their effects, so none is moved.
type relayBehavior struct {
	key, epk string
	number   map[string]int // of each event, by id
	lsns     []int64        // of the transactions of the key in the container
	lines    []string

	lease    *steps.RelayRecord // of the key's range
	bounds   string
	position int64          // LSN of its checkpoint
	history  map[string]int // numbers of histories
	asked    bool
	lost     bool
	done     int              // changes of the key that are done ahead of the checkpoint
	sent     map[int][]string // messages of the key, by call
}

// relayModule returns the module that TLC loads for a recording of relays, its configuration, and
// the lines of each behavior.
func relayModule(all []steps.RelayStep) (module, config string, names []string, lines [][]string) {
	number, txs, keys, key := map[string]int{}, []string{}, []string{}, []string{}
	epks := map[string]string{}
	for i := range all { // transactions and events are numbered by key, then by commit
		if s := &all[i]; s.Do == "commit" && epks[s.Key] == "" {
			epks[s.Key], keys = s.EPK, append(keys, s.Key)
		}
	}
	slices.Sort(keys)
	begins, txOf := []string{}, []string{}
	for _, k := range keys {
		begins = append(begins, fmt.Sprint(len(txs)+1))
		for i := range all {
			s := &all[i]
			if s.Do != "commit" || s.Key != k {
				continue
			}
			var tx []string
			for _, id := range s.IDs {
				number[id] = len(number) + 1
				tx = append(tx, fmt.Sprint(number[id]))
				key, txOf = append(key, strconv.Quote(k)), append(txOf, fmt.Sprint(len(txs)+1))
			}
			txs = append(txs, "<<"+strings.Join(tx, ", ")+">>")
		}
	}
	var traces []string
	for _, k := range keys {
		b := &relayBehavior{key: k, epk: epks[k], number: number, history: map[string]int{}, sent: map[int][]string{}}
		for i := range all {
			b.step(&all[i])
		}
		traces, lines = append(traces, "<<\n"+strings.Join(b.lines, ",\n")+">>"), append(lines, b.lines)
	}
	var defs, cfg strings.Builder
	defs.WriteString("---- MODULE MC ----\nEXTENDS RelayTrace\n")
	cfg.WriteString("SPECIFICATION Explained\nCHECK_DEADLOCK FALSE\nCONSTANTS\n")
	define := func(name, value string) {
		fmt.Fprintf(&defs, "c_%s == %s\n", name, value)
		fmt.Fprintf(&cfg, "  %s <- c_%s\n", name, name)
	}
	tuple := func(of []string) string { return "<<" + strings.Join(of, ", ") + ">>" }
	define("Txs", tuple(txs))
	define("Key", tuple(key))
	define("Poison", "{}")
	define("MinFailing", "3") // minFailingKeys of package relay
	for _, most := range []string{"Sends", "Crashes", "Cuts", "Restarts", "Skips", "Drops"} {
		define("Max"+most, "0")
	}
	define("Cuts", "{}")
	define("Noticed", "FALSE")
	define("InWindow", "TRUE")
	quoted := make([]string, len(keys))
	for i := range keys {
		quoted[i] = strconv.Quote(keys[i])
	}
	define("Of", tuple(quoted))
	define("Begins", tuple(begins))
	fmt.Fprintf(&defs, "c_Numbers == %s\nc_TxOf(e) == c_Numbers[e]\n", tuple(txOf)) // TLC finds it faster than by a search
	cfg.WriteString("  TxOf <- c_TxOf\n")
	define("Traces", tuple(traces))
	defs.WriteString("====\n")
	return defs.String(), cfg.String(), keys, lines
}

func (b *relayBehavior) add(kind string, args ...any) { b.lines = append(b.lines, line(kind, args...)) }

// at returns the number of the key's transactions up to an LSN.
func (b *relayBehavior) at(lsn int64) int {
	n, _ := slices.BinarySearch(b.lsns, lsn+1)
	return n
}

func (b *relayBehavior) events(ids []string) tla {
	numbers := make([]string, len(ids))
	for i, id := range ids {
		numbers[i] = fmt.Sprint(b.number[id])
	}
	return tla("<<" + strings.Join(numbers, ", ") + ">>")
}

func (b *relayBehavior) setOf(ids []string) tla {
	return tla("{" + strings.Trim(string(b.events(ids)), "<>") + "}")
}

func (b *relayBehavior) within(bounds string) bool {
	low, high, found := strings.Cut(bounds, "-")
	return found && low <= b.epk && b.epk < high
}

// step adds the lines of one step.
func (b *relayBehavior) step(s *steps.RelayStep) {
	mine := s.Key == b.key
	switch {
	case s.Do == "commit" && mine:
		b.lsns = append(b.lsns, s.LSN)
		b.add("commit")
	case s.Do == "cut":
		b.lsns = b.lsns[:b.at(s.LSN)]
		b.add("cut", len(b.lsns), s.Kind)
	case s.Do == "lease" && s.Op != "failed" && b.within(s.Lease):
		b.write(s)
	case s.Do == "read" && !s.Open && b.within(s.Lease):
		b.read(s)
	case s.Do == "listed":
		b.add("listed", s.Host)
	case s.Do == "send" && mine:
		b.sent[s.Call] = s.IDs
		b.add("send", s.Call, s.Host, b.events(s.IDs), s.Keys)
	case s.Do == "arrive" && mine:
		b.add("arrive", s.Call, s.N)
	case s.Do == "answer":
		b.answer(s)
	case s.Do == "park" && mine && s.Kind != "":
		b.add("park", s.Host, b.events(s.IDs), s.Kind, b.setOf(s.Stored), s.Placed)
	case s.Do == "park" && mine && !s.Open:
		b.add("follow", s.Host, b.events(s.IDs), b.setOf(s.Stored))
	case s.Do == "parked" && mine:
		b.add("parked", s.Host, b.events(s.IDs))
	case s.Do == "first" && mine && len(s.IDs) > 0:
		b.add("first", s.Host, b.events(s.IDs))
	case s.Do == "remove" && mine:
		b.add("remove", s.Host, b.events(s.IDs), s.Open, s.Kind, s.Auto)
	case (s.Do == "update" || s.Do == "intent") && mine:
		b.add("intent", s.Host, s.Kind, s.Auto)
	case s.Do == "open" && mine:
		b.add("open", s.Host)
	}
}

// read adds the line of a page, unless it repeats the one before.
func (b *relayBehavior) read(s *steps.RelayStep) {
	text := line("read", s.Host, b.at(s.From), b.at(s.To))
	for i := len(b.lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(b.lines[i], `<<"read"`) {
			if b.lines[i] != text {
				break
			}
			return
		}
		if !strings.HasPrefix(b.lines[i], `<<"others"`) && !strings.HasPrefix(b.lines[i], `<<"listed"`) {
			break
		}
	}
	b.lines = append(b.lines, text)
}

// answer adds the outcome of a send: that of the key, or those of others as evidence for the breaker.
func (b *relayBehavior) answer(s *steps.RelayStep) {
	good, bad := map[string]bool{}, map[string]bool{}
	var own *steps.RelayResult
	for i := range s.Results {
		r := &s.Results[i]
		if r.Key == b.key && b.sent[s.Call] != nil {
			own = r
		}
		if r.N > 0 {
			good[r.Key] = true
		}
		if r.Kind == "failed" {
			bad[r.Key] = true
		}
	}
	keys := func(m map[string]bool) tla { return set(slices.Sorted(maps.Keys(m))) }
	switch counts := s.Kind != "ended"; {
	case own != nil:
		b.add("answer", s.Call, s.Host, own.N, keys(good), keys(bad), own.Kind == "refused", counts)
	case counts && len(good)+len(bad) > 0:
		if text := line("others", s.Host, keys(good), keys(bad)); len(b.lines) == 0 || b.lines[len(b.lines)-1] != text {
			b.lines = append(b.lines, text)
		}
	}
}

// write adds the lines of a change of the key's lease.
func (b *relayBehavior) write(s *steps.RelayStep) {
	r := s.Record
	live := r != nil && r.State == ""
	if r == nil || !live && (r.State != "split" || s.Lease != b.bounds) {
		return // a lease that was deleted, or is not or no longer that of the key
	}
	if b.history[r.History] == 0 {
		b.history[r.History] = len(b.history) + 1
	}
	to, before := -1, b.lease
	if before == nil || r.LSN != b.position {
		to = b.at(r.LSN)
	}
	done, was := b.ahead(r), b.done
	switch moved := before == nil || s.Lease != b.bounds || s.Op == "create"; {
	case moved && s.Op == "create":
		b.add("fill", to, done, b.history[r.History])
	case moved:
		b.add("child", to, done, b.history[r.History])
	case r.History != before.History || r.LSN < b.position:
		b.add("back", b.at(r.LSN), b.history[r.History])
	case to >= 0 || r.Lost != b.lost || done != was:
		b.add("lease", to, r.Lost, done)
	}
	if r.Rewind != b.asked {
		b.add("asks", r.Rewind)
	}
	switch {
	case r.State == "split" || r.Owner == "" && before != nil && before.Owner != "":
		b.add("end")
	case r.Owner != "" && (before == nil || s.Lease != b.bounds || r.Owner != before.Owner || r.Epoch != before.Epoch):
		b.add("start", r.Owner)
	}
	b.lease, b.bounds, b.position, b.asked, b.lost, b.done = r, s.Lease, r.LSN, r.Rewind, r.Lost, done
	if r.State == "split" {
		b.bounds = "" // its children follow
	}
}

// ahead returns how many changes of the key the record has as done after its checkpoint.
func (b *relayBehavior) ahead(r *steps.RelayRecord) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.Quote(b.key))) // never fails
	done := r.Ahead.LSN
	for _, held := range r.Ahead.Held {
		if held.Key == h.Sum64() {
			done = min(done, held.LSN-1)
		}
	}
	return b.at(done)
}
