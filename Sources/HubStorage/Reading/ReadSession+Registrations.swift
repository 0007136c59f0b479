import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Lists of registrations, in the order of their numbers: rows of the hub's own pseudo-tags or of a
/// tag, which stand in that order, or the few registrations of one device or installation.
extension ReadSession {
  /// More than any caller wants at once; a bound for memory.
  private static let pageLimit = 10_000

  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int,
    coding: RegistrationIDCoding
  ) throws -> RegistrationPage {
    guard limit > 0 else { return RegistrationPage() }
    let limit = min(limit, Self.pageLimit)
    let reader = RegistrationReader(connection: connection, templates: templates, coding: coding)
    let source = try source(of: query, hub: hub)
    var page = RegistrationPage()
    var cursor = after
    while true {
      let numbers = try source.next(cursor, limit + 1)
      for number in numbers {
        cursor = number
        guard let found = try reader.registration(number, hub: hub), !found.isOver(at: asOf),
          source.isMeant(found.stored.draft)
        else { continue }
        guard page.registrations.count < limit else {
          page.hasMore = true
          return page
        }
        page.registrations.append(found.stored)
      }
      if numbers.count <= limit { return page }
    }
  }

  /// Where a list takes its members from.
  private struct Source {
    /// The next candidates after a number, in rising order, at most so many; fewer at the end.
    let next: (_ after: RegistrationID, _ limit: Int) throws -> [RegistrationID]
    /// Whether a candidate is a member.
    var isMeant: (RegistrationDraft) -> Bool = { _ in true }
  }

  private func source(of query: RegistrationQuery, hub: Hub.ID) throws -> Source {
    switch query {
    case .all:
      let kinds = PushPlatform.allCases.map { AudienceQuery.Kind.native($0) } + [.template]
      let tags = try kinds.compactMap { try connection.tagNumber(.everyone($0, hub: hub)) }
      return Source { after, limit in
        var numbers: [RegistrationID] = []
        for tag in tags {
          numbers += try self.members(of: tag, after: after, limit: limit)
        }
        return Array(numbers.sorted().prefix(limit))
      }
    case .tag(let tag):
      if let implicit = ImplicitTag(folded: tag.folded) {
        let members: Bitmap = try members(of: implicit, hub: hub)
        return Self.source(members.first(members.count).map { Int64($0) })
      }
      guard let number = try connection.tagNumber(.plain(tag.folded, hub: hub)) else {
        return Self.source([])
      }
      return Source { try self.members(of: number, after: $0, limit: $1) }
    case .device(let filter):
      var source = Self.source(try registrations(of: filter, hub: hub))
      source.isMeant = { filter.matches(platform: $0.platform, channel: $0.channel) }
      return source
    }
  }

  private static func source(_ numbers: [RegistrationID]) -> Source {
    let sorted = Set(numbers).sorted()
    return Source { after, limit in Array(sorted.drop { $0 <= after }.prefix(limit)) }
  }

  private func members(
    of tag: Int64, after: RegistrationID, limit: Int
  ) throws -> [RegistrationID] {
    let row = try connection.statement(
      """
      SELECT registration FROM registration_tag WHERE tag = ?1 AND registration > ?2
      ORDER BY registration LIMIT ?3
      """)
    try row.bind(tag, at: 1)
    try row.bind(after, at: 2)
    try row.bind(Int64(limit), at: 3)
    var numbers: [RegistrationID] = []
    while try row.step() { numbers.append(row.integer(0)) }
    return numbers
  }

  /// The registrations that a device may have: native ones by their handle, templates beside them
  /// by their installation, others by an index of their own.
  private func registrations(of filter: RegistrationFilter, hub: Hub.ID) throws -> [RegistrationID]
  {
    var numbers: [RegistrationID] = []
    var installations: Set<Int64> = []
    let platforms = filter.platform.map { [$0] } ?? PushPlatform.allCases
    for platform in platforms {
      for handle in filter.handles {
        let hash = PreparedRegistration.hash(of: handle, platform: platform.code, hub: hub)
        for condition in ["handle_hash = ?1 AND template IS NULL", "template_handle = ?1"] {
          let row = try connection.statement(
            "SELECT id, installation FROM registration WHERE \(condition)")
          try row.bind(hash, at: 1)
          while try row.step() {
            numbers.append(row.integer(0))
            if row.integer(1) != 0 { installations.insert(row.integer(1)) }
          }
        }
      }
    }
    for installation in installations {
      numbers += try connection.registrationRows(of: installation).map(\.number)
    }
    return numbers
  }
}
