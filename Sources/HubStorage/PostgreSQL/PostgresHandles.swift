import HubCore
import SQLDatabase

/// A row of `registration_handle`: a registration has a handle.
struct HandleRow {
  let hub: Hub.ID
  /// The hash of the handle.
  let hash: Int64
  /// The number of the registration.
  let number: RegistrationID
  var isNative = false
}

extension HandleRow {
  init(_ row: PostgresRegistrationRow) {
    self.init(
      hub: row.hub, hash: row.handleHash, number: row.number, isNative: row.key.isNative)
  }
}

/// Finds the registrations that have a handle, in any slot.
struct PostgresHandles: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// The rows of `registration`, called `r`, that have a handle, joined to those of
  /// `registration_handle`, called `h`.
  var joinedHandles: String {
    """
    registration_handle h JOIN registration r
      ON r.hub = h.hub AND r.slot = \(slots.sqlSlot(ofNumber: "h.id")) AND r.id = h.id
    """
  }

  func addHandles(_ rows: [HandleRow]) throws {
    guard !rows.isEmpty else { return }
    let row = try connection.statement(
      """
      INSERT INTO registration_handle (hub, slot, hash, id, is_native)
      SELECT * FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[], ?5::int2[])
      """)
    try bind(rows, to: row)
    try row.bind(PostgresArray.int2(rows.map { $0.isNative ? 1 : 0 }), at: 5)
    try row.run()
  }

  func removeHandles(_ rows: [HandleRow]) throws {
    guard !rows.isEmpty else { return }
    let row = try connection.statement(
      """
      DELETE FROM registration_handle h
      USING unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[]) AS w (hub, slot, hash, id)
      WHERE h.hub = w.hub AND h.slot = w.slot AND h.hash = w.hash AND h.id = w.id
      """)
    try bind(rows, to: row)
    try row.run()
  }

  /// Records changed handles, and registrations that have become native or ceased to be.
  func changeHandles(_ changes: [(old: HandleRow, hash: Int64, isNative: Bool)]) throws {
    let changes = changes.filter { $0.old.hash != $0.hash || $0.old.isNative != $0.isNative }
    guard !changes.isEmpty else { return }
    let row = try connection.statement(
      """
      UPDATE registration_handle h
      SET slot = w.new_slot, hash = w.new_hash, is_native = w.is_native
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[], ?5::int2[], ?6::int8[], ?7::int2[])
        AS w (hub, slot, hash, id, new_slot, new_hash, is_native)
      WHERE h.hub = w.hub AND h.slot = w.slot AND h.hash = w.hash AND h.id = w.id
      """)
    try bind(changes.map(\.old), to: row)
    try row.bind(PostgresArray.int2(changes.map { slots.slot(ofNumber: $0.hash) }), at: 5)
    try row.bind(PostgresArray.int8(changes.map(\.hash)), at: 6)
    try row.bind(PostgresArray.int2(changes.map { $0.isNative ? 1 : 0 }), at: 7)
    try row.run()
  }

  private func bind(_ rows: [HandleRow], to statement: borrowing Statement) throws {
    try statement.bind(PostgresArray.int8(rows.map(\.hub)), at: 1)
    try statement.bind(PostgresArray.int2(rows.map { slots.slot(ofNumber: $0.hash) }), at: 2)
    try statement.bind(PostgresArray.int8(rows.map(\.hash)), at: 3)
    try statement.bind(PostgresArray.int8(rows.map(\.number)), at: 4)
  }

  /// Marks the native registrations of handles that more than one has. It reads the rows
  /// of its query, so it must not be called within a pipeline.
  ///
  /// If two or more had the handle before, they are already marked: a device that is registered
  /// thousands of times costs no more than others.
  /// - Parameters:
  ///   - gained: Registrations that have gained a handle; only native ones count.
  ///   - write: Statements that make them gain it, if that is still to be done; they are sent in the
  ///     same pipeline.
  func markShared(_ gained: [HandleRow], after write: () throws -> Void = {}) throws {
    let groups = Dictionary(grouping: gained.filter(\.isNative)) {
      RegistrationChanges.DeviceHandle(hub: $0.hub, hash: $0.hash)
    }
    guard !groups.isEmpty else { return try connection.pipelined(write) }
    let handles = Array(groups.keys)
    let row = try connection.statement(
      """
      SELECT w.n, h.id FROM unnest(?1::int8[], ?2::int2[], ?3::int8[], ?4::int8[])
        WITH ORDINALITY AS w (hub, slot, hash, gained, n),
      LATERAL (SELECT id FROM registration_handle h
        WHERE h.hub = w.hub AND h.slot = w.slot AND h.hash = w.hash AND h.is_native = 1
        LIMIT w.gained + 1) AS h
      """, PostgresArray.int8(handles.map(\.hub)),
      PostgresArray.int2(handles.map { slots.slot(ofNumber: $0.hash) }),
      PostgresArray.int8(handles.map(\.hash)),
      PostgresArray.int8(handles.map { Int64(groups[$0]?.count ?? 0) }))
    try connection.pipelined {
      try write()
      try row.run()
    }
    var holders: [Int: Set<RegistrationID>] = [:]
    while try row.step() { holders[Int(row.integer(0)) - 1, default: []].insert(row.integer(1)) }
    var shared: [(hub: Hub.ID, number: RegistrationID)] = []
    for (index, numbers) in holders where numbers.count > 1 {
      let handle = handles[index]
      let all = numbers.union(groups[handle, default: []].map(\.number))
      shared += all.map { (handle.hub, $0) }
    }
    guard !shared.isEmpty else { return }
    try execute(
      """
      UPDATE registration r SET shared_at = pg_current_xact_id()
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, id)
      WHERE r.hub = w.hub AND r.slot = w.slot AND r.id = w.id AND r.shared_at IS NULL
      """, PostgresArray.int8(shared.map(\.hub)),
      PostgresArray.int2(shared.map { slots.slot(ofNumber: $0.number) }),
      PostgresArray.int8(shared.map(\.number)))
  }
}
