import HubCore
import NotificationHubs
import SQLDatabase

/// A row of `registration`, as far as writing needs it.
struct RegistrationRow {
  let number: RegistrationID
  let installation: Int64
  let key: RegistrationKey
  let platform: Int64
  let handle: String
  let handleHash: Int64
  /// The numbers of its tags.
  let tags: [Int64]
  let confirmedAt: Int64

  static let columns =
    "id, installation, template, name, tile, platform, handle, handle_hash, tags, confirmed_at"

  /// - Parameter row: Selected with ``columns``.
  init(_ row: borrowing Statement) throws {
    number = row.integer(0)
    installation = row.integer(1)
    key = RegistrationKey(
      isNative: row.isNull(2), name: row.optionalText(3), tile: row.optionalText(4))
    platform = row.integer(5)
    handle = row.text(6)
    handleHash = row.integer(7)
    var reader = ByteReader(row.bytes(8))
    tags = try (0..<(try reader.count())).map { _ in try reader.signedNumber() }
    confirmedAt = row.integer(9)
  }
}

extension WriteSession {
  func insert(
    _ registration: PreparedRegistration, of prepared: PreparedInstallation, installation: Int64
  ) throws {
    guard state.lastRegistration < Int64(UInt32.max) else {
      throw StoreError.engine(code: 0, message: "all numbers for registrations have been used")
    }
    state.lastRegistration += 1
    let number = state.lastRegistration
    let tags = try registration.tags.map { try tagNumber($0) }
    do {
      let row = try connection.statement(
        """
        INSERT INTO registration (id, hub, installation, name, tile, etag, platform, template,
          handle, handle_hash, variables, tags, expires_at, confirmed_at)
        VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        """)
      try row.bind(number, at: 1)
      try row.bind(prepared.hub, at: 2)
      try row.bind(installation, at: 3)
      try row.bind(registration.key.name, at: 4)
      try row.bind(registration.key.tile, at: 5)
      try bind(registration, tags: tags, of: prepared, to: row, from: 6)
      try row.run()
    }
    for tag in tags { setTag(tag, of: number, isMember: true) }
    if registration.key.isNative {
      try noteHandle(of: number, registration.handle, registration.handleHash, hub: prepared.hub)
    }
  }

  func change(
    _ old: RegistrationRow, to registration: PreparedRegistration, of prepared: PreparedInstallation
  ) throws {
    let hasMoved = old.handle != registration.handle || old.handleHash != registration.handleHash
    if hasMoved && old.key.isNative { try forgetHandle(of: old, hub: prepared.hub) }
    let tags = try registration.tags.map { try tagNumber($0) }
    do {
      let row = try connection.statement(
        """
        UPDATE registration SET platform = ?2, template = ?3, handle = ?4, handle_hash = ?5,
          variables = ?6, tags = ?7, expires_at = ?8, confirmed_at = ?9, etag = etag + 1
        WHERE id = ?1
        """)
      try row.bind(old.number, at: 1)
      try bind(registration, tags: tags, of: prepared, to: row, from: 2)
      try row.run()
    }
    for tag in old.tags where !tags.contains(tag) {
      setTag(tag, of: old.number, isMember: false)
    }
    for tag in tags where !old.tags.contains(tag) {
      setTag(tag, of: old.number, isMember: true)
    }
    if hasMoved && old.key.isNative {
      try noteHandle(
        of: old.number, registration.handle, registration.handleHash, hub: prepared.hub)
    }
  }

  func remove(_ row: RegistrationRow, hub: Hub.ID) throws {
    if row.key.isNative { try forgetHandle(of: row, hub: hub) }
    for tag in row.tags { setTag(tag, of: row.number, isMember: false) }
    let delete = try connection.statement("DELETE FROM registration WHERE id = ?1")
    try delete.bind(row.number, at: 1)
    try delete.run()
  }

  /// Binds platform, template, handle, its hash, variables, tags, expiry and time, in this order.
  private func bind(
    _ registration: PreparedRegistration, tags: [Int64], of prepared: PreparedInstallation,
    to row: borrowing Statement, from index: Int32
  ) throws {
    try row.bind(registration.platform, at: index)
    let template = try registration.template.map { try templateNumber($0, hub: prepared.hub) }
    try row.bind(template, at: index + 1)
    try row.bind(registration.handle, at: index + 2)
    try row.bind(registration.handleHash, at: index + 3)
    try row.bind(registration.variables, at: index + 4)
    var numbers = ByteWriter()
    numbers.write(UInt64(tags.count))
    for tag in tags { numbers.write(tag) }
    try row.bind(numbers.bytes, at: index + 5)
    try row.bind(registration.expiresAt, at: index + 6)
    try row.bind(prepared.at, at: index + 7)
  }
}

extension SQLConnection {
  func registrationRows(of installation: Int64) throws -> [RegistrationRow] {
    let row = try statement(
      "SELECT \(RegistrationRow.columns) FROM registration WHERE installation = ?1")
    try row.bind(installation, at: 1)
    var rows: [RegistrationRow] = []
    while try row.step() { rows.append(try RegistrationRow(row)) }
    return rows
  }

  func registrationRow(_ number: RegistrationID) throws -> RegistrationRow? {
    let row = try statement("SELECT \(RegistrationRow.columns) FROM registration WHERE id = ?1")
    try row.bind(number, at: 1)
    return try row.step() ? try RegistrationRow(row) : nil
  }
}
