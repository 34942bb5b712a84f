package cosmosemu

// Operation is the name of a wire operation.
type Operation string

// The operations: one per kind of request.
const (
	OpReadAccount            Operation = "ReadAccount"
	OpCreateDatabase         Operation = "CreateDatabase"
	OpReadDatabase           Operation = "ReadDatabase"
	OpDeleteDatabase         Operation = "DeleteDatabase"
	OpListDatabases          Operation = "ListDatabases"
	OpQueryDatabases         Operation = "QueryDatabases"
	OpCreateContainer        Operation = "CreateContainer"
	OpReadContainer          Operation = "ReadContainer"
	OpReplaceContainer       Operation = "ReplaceContainer"
	OpDeleteContainer        Operation = "DeleteContainer"
	OpListContainers         Operation = "ListContainers"
	OpQueryContainers        Operation = "QueryContainers"
	OpCreateUser             Operation = "CreateUser"
	OpReadUser               Operation = "ReadUser"
	OpReplaceUser            Operation = "ReplaceUser"
	OpDeleteUser             Operation = "DeleteUser"
	OpListUsers              Operation = "ListUsers"
	OpQueryUsers             Operation = "QueryUsers"
	OpCreatePermission       Operation = "CreatePermission"
	OpReadPermission         Operation = "ReadPermission"
	OpReplacePermission      Operation = "ReplacePermission"
	OpDeletePermission       Operation = "DeletePermission"
	OpListPermissions        Operation = "ListPermissions"
	OpQueryPermissions       Operation = "QueryPermissions"
	OpListOffers             Operation = "ListOffers"
	OpQueryOffers            Operation = "QueryOffers"
	OpReadOffer              Operation = "ReadOffer"
	OpReplaceOffer           Operation = "ReplaceOffer"
	OpReadPartitionKeyRanges Operation = "ReadPartitionKeyRanges"
	OpCreateItem             Operation = "CreateItem"
	OpUpsertItem             Operation = "UpsertItem"
	OpReadItem               Operation = "ReadItem"
	OpReplaceItem            Operation = "ReplaceItem"
	OpPatchItem              Operation = "PatchItem"
	OpDeleteItem             Operation = "DeleteItem"
	OpListItems              Operation = "ListItems"
	OpBatch                  Operation = "Batch"
	OpDeletePartition        Operation = "DeletePartition"
	OpListConflicts          Operation = "ListConflicts"
	OpReadConflict           Operation = "ReadConflict"
	OpReadChangeFeed         Operation = "ReadChangeFeed"
	OpQueryItems             Operation = "QueryItems"
	OpQueryPlan              Operation = "QueryPlan"
)

// writes reports whether the operation changes anything.
func (op Operation) writes() bool {
	switch op {
	case OpCreateDatabase, OpDeleteDatabase, OpCreateContainer, OpReplaceContainer, OpDeleteContainer,
		OpCreateUser, OpReplaceUser, OpDeleteUser, OpCreatePermission, OpReplacePermission, OpDeletePermission,
		OpReplaceOffer, OpCreateItem, OpUpsertItem, OpReplaceItem, OpPatchItem, OpDeleteItem, OpBatch, OpDeletePartition:
		return true
	default:
		return false
	}
}
