import HubCore
import SQLDatabase

/// A row of `registration_handle`: that a registration has a handle.
struct HandleRow {
  let hub: Hub.ID
  /// Of the handle.
  let hash: Int64
  /// The registration.
  let number: RegistrationID
  var isNative = false
}

extension HandleRow {
  init(_ row: PostgresRegistrationRow) {
    self.init(
      hub: row.hub, hash: row.handleHash, number: row.number, isNative: row.key.isNative)
  }
}

/// Which registrations have a handle, in whatever slots they stand.
extension PostgresSession {
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

  /// Notes that registrations have other handles than before, or have become native or not.
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

  /// Marks the native registrations of handles that more than one has, which is looked at once a
  /// handle has got one more. It reads, so it cannot be part of a pipeline.
  func markShared(_ handles: Set<RegistrationChanges.DeviceHandle>) throws {
    let several = try handlesOfSeveral(among: handles)
    guard !several.isEmpty else { return }
    let row = try connection.statement(
      """
      UPDATE registration r SET shared_at = pg_current_xact_id()
      FROM unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, hash)
      JOIN registration_handle h ON h.hub = w.hub AND h.slot = w.slot AND h.hash = w.hash
        AND h.is_native = 1
      WHERE r.hub = h.hub AND r.slot = \(slots.sqlSlot(ofNumber: "h.id")) AND r.id = h.id
        AND r.shared_at IS NULL
      """)
    try bind(several, to: row)
    try row.run()
  }

  private func handlesOfSeveral(
    among handles: Set<RegistrationChanges.DeviceHandle>
  ) throws -> [RegistrationChanges.DeviceHandle] {
    guard !handles.isEmpty else { return [] }
    let row = try connection.statement(
      """
      SELECT h.hub, h.hash FROM unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, hash)
      JOIN registration_handle h ON h.hub = w.hub AND h.slot = w.slot AND h.hash = w.hash
      WHERE h.is_native = 1 GROUP BY h.hub, h.hash HAVING COUNT(*) > 1
      """)
    try bind(Array(handles), to: row)
    var several: [RegistrationChanges.DeviceHandle] = []
    while try row.step() { several.append(.init(hub: row.integer(0), hash: row.integer(1))) }
    return several
  }

  private func bind(
    _ handles: [RegistrationChanges.DeviceHandle], to statement: borrowing Statement
  ) throws {
    try statement.bind(PostgresArray.int8(handles.map(\.hub)), at: 1)
    try statement.bind(PostgresArray.int2(handles.map { slots.slot(ofNumber: $0.hash) }), at: 2)
    try statement.bind(PostgresArray.int8(handles.map(\.hash)), at: 3)
  }
}
