package operations

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// rangesView is a page of the ranges, with a map of all.
type rangesView struct {
	Read       Source
	Cells      []cell
	Conditions []conditionCount
	Show, Find string
	Rows       []rangeRow
	Page       pageOf
	Paused     bool
	Total      int
}

// cell is a part of the map: one range, or several neighbours.
type cell struct {
	State, Title, URL string
}

type rangeRow struct {
	Name, Range, Owner   string
	Read                 Source
	State                string
	Condition            operator.Condition
	For                  time.Duration
	Behind               int64
	Oldest               time.Duration
	Known                bool
	Checkpoint           time.Time // last write of the lease
	Error                string
	Pending              []string
	Epoch                int64
	Previous             string
	LSN, Delivered, Docs int64
	Lease                changefeed.Lease
	Failures             int
	Paused               bool
}

// maxCells bounds the map: with more ranges, neighbours share a cell.
const maxCells = 320

func newRangeRow(r operator.Range, p Overview) rangeRow {
	c, d := r.Condition(p.Snapshot.At)
	return rangeRow{
		Name: changefeed.LeaseName(r.ID), Range: r.Range.String(), Owner: r.Owner, Condition: c, State: p.Ranges.State(stateOf(c)), For: d, Read: p.Ranges,
		Behind: r.Lag.Transactions, Oldest: r.Lag.Age, Known: r.Lag.Known && p.Ranges.Current(), Checkpoint: r.Timestamp, Error: cmp.Or(r.Error, r.Lag.Error), Pending: pendingCommands(r.Request),
		Epoch: r.Epoch, Previous: r.Previous, LSN: r.LSN, Delivered: max(r.LSN, r.Delivered), Docs: r.Handled, Lease: r.Lease, Failures: r.Failures, Paused: r.Request.Paused,
	}
}

// pendingCommands lists the commands in the record. The owner removes those that it has carried out,
// except a pause, which an operator ends.
func pendingCommands(r changefeed.Request) []string {
	var w []string
	if r.Paused {
		w = append(w, "pause")
	}
	if r.Release {
		w = append(w, "release")
	}
	if r.Retry {
		w = append(w, "retry")
	}
	switch {
	case r.History != "":
		w = append(w, "restart")
	case r.Rewind != nil:
		w = append(w, "rewind")
	}
	return w
}

func (s *Operations) ranges(r *http.Request) (any, error) {
	p := s.reader.Latest(r.Context())
	q := r.URL.Query()
	v := rangesView{
		Read: p.Ranges, Conditions: conditions(p), Show: q.Get("show"), Find: strings.TrimSpace(q.Get("find")),
		Paused: p.Paused, Total: len(p.Snapshot.Ranges),
	}
	v.Cells = cells(p)
	var found []operator.Range
	for _, one := range p.Snapshot.Ranges {
		c, _ := one.Condition(p.Snapshot.At)
		if v.Show != "" && string(c) != v.Show || v.Find != "" && !matches(one, v.Find) {
			continue
		}
		found = append(found, one)
	}
	from, to := paged(q, len(found), r.URL.Path, &v.Page)
	for _, one := range found[from:to] {
		v.Rows = append(v.Rows, newRangeRow(one, p))
	}
	return v, nil
}

func matches(r operator.Range, find string) bool {
	return strings.HasPrefix(changefeed.LeaseName(r.ID), strings.ToLower(find)) || strings.Contains(r.Owner, find) || strings.Contains(r.Range.String(), strings.ToUpper(find))
}

// cells returns the map of the key space. Each cell has the worst condition of its ranges, so
// that no problem is hidden.
func cells(p Overview) []cell {
	s := p.Snapshot
	n := min(maxCells, len(s.Ranges))
	all := make([]cell, 0, n)
	for i := range n {
		from, to := i*len(s.Ranges)/n, (i+1)*len(s.Ranges)/n
		worst, at := len(operator.Conditions()), from
		for j := from; j < to; j++ {
			c, _ := s.Ranges[j].Condition(s.At)
			if rank := slices.Index(operator.Conditions(), c); rank < worst {
				worst, at = rank, j
			}
		}
		c := operator.Conditions()[worst]
		one := cell{State: cmp.Or(p.Ranges.State(stateOf(c)), "unknown"), Title: changefeed.LeaseName(s.Ranges[at].ID) + ": " + string(c), URL: "ranges/" + changefeed.LeaseName(s.Ranges[at].ID)}
		if to-from > 1 {
			one.Title = strconv.Itoa(to-from) + " ranges, worst: " + string(c)
			one.URL = "ranges?page=" + strconv.Itoa(from/pageSize+1)
		}
		all = append(all, one)
	}
	return all
}

// paged returns the bounds of the page that a query requests, and fills in the pagination.
func paged(q url.Values, total int, path string, into *pageOf) (from, to int) {
	number, err := strconv.Atoi(q.Get("page"))
	last := max(1, (total+pageSize-1)/pageSize)
	if err != nil || number < 1 {
		number = 1
	}
	number = min(number, last)
	from = (number - 1) * pageSize
	to = min(from+pageSize, total)
	link := func(n int) string {
		next := url.Values{}
		for name, values := range q {
			if name != "page" {
				next[name] = values
			}
		}
		next.Set("page", strconv.Itoa(n))
		return path + "?" + next.Encode()
	}
	*into = pageOf{From: min(from+1, total), To: to, Total: total}
	if number > 1 {
		into.Before = link(number - 1)
	}
	if number < last {
		into.After = link(number + 1)
	}
	return from, to
}

// rangeView has the details of one range.
type rangeView struct {
	rangeRow
	Moves []Move
}

func (s *Operations) oneRange(r *http.Request) (any, error) {
	p := s.reader.Latest(r.Context())
	one, err := rangeNamed(p, r.PathValue("lease"))
	if err != nil {
		return nil, err
	}
	v := rangeView{rangeRow: newRangeRow(one, p)}
	for _, m := range p.Moves {
		if m.Lease == v.Name {
			v.Moves = append(v.Moves, m)
		}
	}
	return v, nil
}

func rangeNamed(p Overview, name string) (operator.Range, error) {
	for _, one := range p.Snapshot.Ranges {
		if changefeed.LeaseName(one.ID) == name {
			return one, nil
		}
	}
	if !p.Ranges.Known() {
		return operator.Range{}, &page.Refusal{Status: http.StatusServiceUnavailable, Title: "Not known", Detail: "The ranges could not be read yet. " + p.Ranges.Err, Next: "Try again, or see the doctor."}
	}
	return operator.Range{}, &page.Refusal{Status: http.StatusNotFound, Title: "Range not found", Detail: "There is no lease " + name + ": it was split or merged, or never existed.", Next: "See the list of ranges."}
}
