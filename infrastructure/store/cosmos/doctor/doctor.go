// Package doctor examines Cosmos DB for an operator.
//
// The containers and the roles that each process needs are declared here (containers.go,
// roles.go), because a process verifies them at its start and the doctor examines the same.
package doctor

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/domain/fault"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/contacts"
	"feedbox/infrastructure/store/document"
)

// Options are the parts of a Doctor. All except Identity are required.
type Options struct {
	// Client is examined; Clock and Account are policies of it.
	Client  *azcosmos.Client
	Clock   *Clock
	Account *cosmos.Account
	// Contract distinguishes events from other documents.
	Contract document.EventContract
	// Identity is the credential of this process; nil where only keys are used.
	Identity azcore.TokenCredential
}

// Doctor examines an account, its database and containers, and the rights of this process. It
// changes nothing, and is safe for concurrent use.
type Doctor struct {
	cfg config.Cosmos
	Options
}

// New returns the doctor of the account that cfg names. It does no I/O.
func New(cfg config.Cosmos, o Options) *Doctor { return &Doctor{cfg, o} }

// Examine implements operator.StoreDoctor.
func (d *Doctor) Examine(process operator.Process, step func(operator.Examination) bool) operator.Unusable {
	const dns = "cosmos dns"
	unusable := operator.Unusable{}
	if step(operator.LookUp(dns, d.host(), "FEEDBOX_COSMOS_ENDPOINT")) {
		step(func(ctx context.Context) []operator.Finding {
			found := d.examineContainers(ctx, process)
			for part, container := range d.containers() {
				check := "container " + container
				if slices.ContainsFunc(found, func(f operator.Finding) bool { return f.Check == check && f.Status == operator.FindingFailed }) {
					unusable[part] = check
				}
			}
			return found
		})
		step(func(ctx context.Context) []operator.Finding { return d.examineWriteRegion(ctx, process) })
		step(d.examineAccount)
		step(d.Clock.examine)
	} else {
		unusable = operator.AllUnusable(dns)
		for _, spec := range Containers(process, d.cfg, d.Contract) {
			step(operator.Unexamined(dns, "container "+spec.ID))
		}
		step(operator.Unexamined(dns, "account", "clock"))
	}
	if process == operator.ProcessAPI {
		if failed := unusable.Of(operator.PartFeed); failed != "" {
			step(operator.Unexamined(failed, contactsCheck))
		} else {
			step(d.examineContacts)
		}
	}
	return unusable
}

// containers returns the names of the containers by the parts that they hold.
func (d *Doctor) containers() map[operator.Part]string {
	return map[operator.Part]string{operator.PartFeed: d.cfg.Container, operator.PartLeases: d.cfg.Leases, operator.PartParked: d.cfg.Parked}
}

// Describe implements operator.StoreDoctor.
func (*Doctor) Describe(err error) string { return azure.Brief(err) }

// Advise implements operator.StoreDoctor.
func (d *Doctor) Advise(ctx context.Context, err error, part operator.Part) string {
	container := d.containers()[part]
	return d.advice(ctx, err, DataRoles(operator.ProcessRelay, d.cfg)[container], container)
}

func (d *Doctor) host() string {
	u, err := url.Parse(string(d.cfg.Endpoint))
	if err != nil {
		return d.cfg.Endpoint.String() // the configuration has been checked
	}
	return u.Hostname()
}

// examineContainers checks that the containers exist and have the required properties.
func (d *Doctor) examineContainers(ctx context.Context, process operator.Process) []operator.Finding {
	var found []operator.Finding
	refused := map[int]string{} // the first check that was refused with a status
	for _, spec := range Containers(process, d.cfg, d.Contract) {
		check := "container " + spec.ID
		if ctx.Err() != nil {
			found = append(found, operator.Fine(check, "not examined, because the checks of the containers before it took too long").Is(operator.FindingUnknown, ""))
			continue
		}
		err := cosmos.Verify(ctx, d.Client, d.cfg.Database, spec)
		if err == nil {
			detail := "partition key " + spec.PartitionKeyPath
			if spec.TTL {
				detail += ", TTL on without a default"
			} else {
				detail += ", nothing expires"
			}
			found = append(found, operator.Fine(check, "%s", detail))
			continue
		}
		f := operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingFailed, "")
		switch status := azure.StatusOf(err); {
		case refused[status] != "": // the advice may be several lines, and has the same remedy
			f.Next = "see " + refused[status]
		case status != http.StatusNotFound && status != 0:
			refused[status] = check
			fallthrough
		default:
			f.Next = d.advice(ctx, err, metadataRole, "")
		}
		found = append(found, f)
	}
	return found
}

// examineAccount checks the properties of the account in its first reply.
func (d *Doctor) examineAccount(context.Context) []operator.Finding {
	const check = "account"
	level, err := d.Account.Level(), d.Account.Verify()
	switch {
	case level == "" && err != nil:
		return []operator.Finding{operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingUnknown, "")}
	case level == "":
		return []operator.Finding{operator.Fine(check, "it did not describe itself").Is(operator.FindingUnknown, "")}
	case err != nil:
		return []operator.Finding{operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingFailed, "change the account as it says; relay and API do not start on it")}
	}
	return []operator.Finding{operator.Fine(check, "consistency %s, one write region", level)}
}

const contactsCheck = "read contacts"

// examineContacts uses the data as the API does.
func (d *Doctor) examineContacts(ctx context.Context) []operator.Finding {
	const check = contactsCheck
	if err := d.readContacts(ctx); err != nil {
		return []operator.Finding{operator.Fine(check, "%s", azure.Brief(err)).Is(operator.FindingFailed, d.advice(ctx, err, DataRoles(operator.ProcessAPI, d.cfg)[d.cfg.Container], d.cfg.Container))}
	}
	return []operator.Finding{operator.Fine(check, "allowed")}
}

func (d *Doctor) readContacts(ctx context.Context) error {
	data, err := d.Client.NewContainer(d.cfg.Database, d.cfg.Container)
	if err != nil {
		return err
	}
	reader, err := contacts.NewReader(data)
	if err != nil {
		return err
	}
	if _, err := reader.Read(ctx, uuid.Nil, "", ""); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	_, err = reader.Page(ctx, 1, "", "")
	return err
}
