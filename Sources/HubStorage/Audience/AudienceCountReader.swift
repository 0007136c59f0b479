import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// The audiences of all kinds of sends to one expression.
private struct AudienceKinds {
  var native: [PushPlatform: Audience] = [:]
  var template: Audience?
  /// The tags of templates' names; `nil` when there are too many of them.
  var names: [TemplateKey: Int64]? = [:]

  /// The bitmaps that counting needs.
  var tags: Set<Int64> {
    var tags = Set((names ?? [:]).values)
    for audience in native.values { tags.formUnion(audience.tags) }
    if let template { tags.formUnion(template.tags) }
    return tags
  }

  func counts(_ bitmaps: [Int64: Bitmap]) -> AudienceCounts {
    var counts = AudienceCounts()
    for (platform, audience) in native {
      let count = audience.count(bitmaps)
      if count > 0 { counts.native[platform] = count }
    }
    guard let everyone = template?.everyone(bitmaps), let names else { return counts }
    for (name, tag) in names {
      let count = bitmaps[tag].map(everyone.intersectionCount) ?? 0
      if count > 0 { counts.templates[name] = count }
    }
    return counts
  }
}

/// Counts of audiences by platform and template.
struct AudienceCountReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// - Returns: `isComplete` is false when templates remain to be counted from their rows.
  func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) throws -> (counts: AudienceCounts, isComplete: Bool) {
    let kinds = try connection.reading { try self.kinds(of: expression, hub: hub, asOf: asOf) }
    let counts = try AudienceReader(session).withBitmaps(of: kinds.tags) { kinds.counts($0) }
    return (counts, kinds.names != nil)
  }

  private func kinds(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) throws -> AudienceKinds {
    var kinds = AudienceKinds()
    guard try session.hasHub(hub) else { return kinds }
    try AudienceReader(session).noteCommit()
    let term = try expression.map { try AudienceReader(session).term($0, hub: hub) }
    let expired = try AudienceReader(session).expired(hub: hub, asOf: asOf.milliseconds)
    for platform in PushPlatform.allCases {
      guard let tag = try connection.tagNumber(.everyone(.native(platform), hub: hub)) else {
        continue
      }
      kinds.native[platform] = Audience(kind: tag, term: term, expired: expired)
    }
    if let tag = try connection.tagNumber(.everyone(.template, hub: hub)) {
      kinds.template = Audience(kind: tag, term: term, expired: expired)
      kinds.names = try names(hub: hub)
    }
    return kinds
  }

  /// - Returns: `nil` when there are more names than are counted by bitmaps.
  private func names(hub: Hub.ID) throws -> [TemplateKey: Int64]? {
    let rows = try connection.rows(
      "SELECT id, name FROM tag WHERE hub = ?1 AND kind = ?2 LIMIT ?3", hub,
      TagKey.Kind.namedTemplate.rawValue, Int64(session.countedNames + 1)
    ) { (number: $0.integer(0), name: $0.text(1)) }
    guard rows.count <= session.countedNames else { return nil }
    var names: [TemplateKey: Int64] = [:]
    for row in rows {
      guard let key = TemplateKey(tagName: row.name) else { continue }
      names[key] = row.number
    }
    return names
  }

  /// Maximum number of registrations read at a time.
  private static let countStretch = 20_000

  /// Counts one slice of an audience, from a registration number on.
  /// - Returns: The counts, and the number at which the next slice starts; `nil` after the last.
  func templateCounts(
    _ query: AudienceQuery, from first: UInt32
  ) throws -> (counts: [TemplateKey: Int], next: UInt32?) {
    guard let audience = try AudienceReader(session).audience(query, withExpired: true) else {
      return ([:], nil)
    }
    let numbers = try AudienceReader(session).withBitmaps(of: audience.tags) {
      audience.members(from: first, limit: Self.countStretch, $0)
    }
    let counts = try connection.reading {
      var counts: [TemplateKey: Int] = [:]
      let row = try connection.statement("SELECT platform, name FROM registration WHERE id = ?1")
      for number in numbers {
        try row.bind(Int64(number), at: 1)
        if try row.step() {
          let key = TemplateKey(
            platform: try PushPlatform(code: row.integer(0)), name: row.optionalText(1) ?? "")
          counts[key, default: 0] += 1
        }
        row.reset()
      }
      return counts
    }
    guard numbers.count == Self.countStretch, let last = numbers.last, last < .max else {
      return (counts, nil)
    }
    return (counts, last + 1)
  }
}
