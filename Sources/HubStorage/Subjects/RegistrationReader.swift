import Foundation
import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Reads whole registrations: their rows, and the drafts from the installations that derived them.
///
/// Valid for one transaction and its thread.
final class RegistrationReader {
  let connection: any SQLConnection
  private let templates: TemplateTable
  private let coding: RegistrationIDCoding
  /// The drafts that installations derive, by the number of the installation.
  private var drafts: [Int64: [RegistrationDraft]] = [:]

  init(
    connection: any SQLConnection, templates: TemplateTable, coding: RegistrationIDCoding
  ) {
    self.connection = connection
    self.templates = templates
    self.coding = coding
  }

  /// A registration with the columns of its row that writing needs.
  struct Found {
    let row: RegistrationRow
    let stored: StoredRegistration
    /// `nil` when the hub has made the id.
    let publicID: String?
    /// The column; `nil` until a push has determined it.
    let environment: Int64?

    func isOver(at now: Date) -> Bool { stored.draft.expiresAt.map { $0 <= now } ?? false }
  }

  /// The coding with the secret from which ids are made.
  static func idCoding(in connection: any SQLConnection) throws -> RegistrationIDCoding {
    let row = try connection.statement("SELECT first, second FROM registration_key")
    guard try row.step() else { throw StoreError.corrupt("registration_key is empty") }
    return RegistrationIDCoding(
      key: (UInt64(bitPattern: row.integer(0)), UInt64(bitPattern: row.integer(1))))
  }

  private static let columns =
    """
    \(RegistrationRow.columns), hub, etag, expires_at, variables, public_id, tag_text, template,
    environment
    """

  /// The registration with a number, if it belongs to the hub.
  func registration(_ number: RegistrationID, hub: Hub.ID) throws -> Found? {
    let row = try connection.statement(
      "SELECT \(Self.columns) FROM registration WHERE id = ?1 AND hub = ?2")
    try row.bind(number, at: 1)
    try row.bind(hub, at: 2)
    return try row.step() ? try found(row) : nil
  }

  /// The registration with an id that clients use, expired or not.
  func registration(_ id: String, hub: Hub.ID) throws -> Found? {
    if let number = coding.number(in: id, hub: hub) {
      return try registration(number, hub: hub)
    }
    let row = try connection.statement(
      "SELECT \(Self.columns) FROM registration WHERE hub = ?1 AND public_hash = ?2")
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(id), at: 2)
    while try row.step() {
      let found = try found(row)
      if found.publicID.map({ $0.utf8.hasSameBytes(as: id.utf8) }) ?? false { return found }
    }
    return nil
  }

  private func found(_ columns: borrowing Statement) throws -> Found {
    let row = try RegistrationRow(columns)
    let hub = columns.integer(11)
    let publicID = columns.optionalText(15)
    let draft: RegistrationDraft
    if let tags = columns.optionalText(16) {
      draft = try written(row, columns, tags: tags)
    } else if let derived = try drafts(of: row.installation).first(where: { $0.key == row.key }) {
      draft = derived
    } else {
      throw StoreError.corrupt("registration \(row.number) does not fit its installation")
    }
    return Found(
      row: row,
      stored: StoredRegistration(
        number: row.number, id: publicID ?? coding.id(of: row.number, hub: hub), draft: draft,
        etag: columns.integer(12), isDerived: row.installation != 0),
      publicID: publicID, environment: columns.optionalInteger(18))
  }

  private func written(
    _ row: RegistrationRow, _ columns: borrowing Statement, tags: String
  ) throws -> RegistrationDraft {
    let platform = try PushPlatform(code: row.platform)
    var variables: [String: String] = [:]
    if let bytes = columns.optionalBytes(14) {
      var reader = ByteReader(bytes)
      variables = try reader.words()
    }
    let kind: RegistrationDraft.Kind =
      if let template = columns.optionalInteger(17) {
        .template(try templates.template(template), name: row.key.name)
      } else { .native }
    return RegistrationDraft(
      kind: kind, platform: platform, channel: PushChannel(stored: row.handle, platform: platform),
      tags: tags.split(separator: ",").map { Tag(rawValue: String($0)) },
      pushVariables: variables,
      expiresAt: columns.optionalInteger(13).map { Date(milliseconds: $0) },
      secondaryTileName: row.key.tile)
  }

  private func drafts(of number: Int64) throws -> [RegistrationDraft] {
    if let known = drafts[number] { return known }
    let drafts = try connection.installation(number, templates: templates)?.registrationDrafts ?? []
    self.drafts[number] = drafts
    return drafts
  }
}

extension PushEnvironment {
  /// - Parameter number: The column's value; `nil` means the credential's own environment.
  init(stored number: Int64?) {
    self = number.flatMap { UInt8(exactly: $0) }.flatMap(Self.init(rawValue:)) ?? .own
  }
}
