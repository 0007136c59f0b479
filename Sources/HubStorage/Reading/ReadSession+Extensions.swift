import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// The most installations that are looked at for one page.
  private static let installationStretch = 5_000
  /// The most registrations that are counted at a time.
  private static let countStretch = 20_000

  /// The next installations for which a filter is true, in the order of the index: by the hash of
  /// the id, then by the id.
  func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: String?, limit: Int
  ) throws -> InstallationPage {
    let row = try connection.statement(
      """
      SELECT public_id, document FROM installation WHERE hub = ?1 AND id_hash >= ?2
        AND (id_hash > ?2 OR public_id > ?3)\(filter.userID == nil ? "" : " AND user_hash = ?5")
      ORDER BY id_hash, public_id LIMIT ?4
      """)
    try row.bind(hub, at: 1)
    try row.bind(after.map { PreparedInstallation.hash($0.lowercased()) } ?? .min, at: 2)
    try row.bind(after ?? "", at: 3)
    // One more tells whether there are more.
    try row.bind(Int64(Self.installationStretch + 1), at: 4)
    if let user = filter.userID {
      try row.bind(PreparedInstallation.hash(user.lowercased()), at: 5)
    }
    var page = InstallationPage()
    var last: String?
    var seen = 0
    while try row.step() {
      if page.installations.count >= limit || seen == Self.installationStretch {
        page.next = last
        break
      }
      seen += 1
      let id = row.text(0)
      last = id
      let installation = try InstallationDocument.decode(row.bytes(1), id: id) {
        try templates.template($0)
      }
      if filter.matches(installation) { page.installations.append(installation) }
    }
    return page
  }

  /// Counts a stretch of an audience from a registration number on.
  /// - Returns: With the number at which the next stretch starts; `nil` after the last.
  func templateCounts(
    _ query: AudienceQuery, from first: UInt32
  ) throws -> (counts: [TemplateKey: Int], next: UInt32?) {
    guard let audience = try audience(query, withExpired: true) else {
      return ([:], nil)
    }
    let numbers = try withBitmaps(of: audience.tags) {
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

  /// The numbers of notifications that can reach nobody but a user.
  func notifications(onlyFor userID: String, hub: Hub.ID) throws -> [Int64] {
    let own = try ownTags(ofUser: userID, hub: hub)
    let row = try connection.statement(
      """
      SELECT id, expression FROM notification WHERE hub = ?1 AND expression IS NOT NULL
      """)
    try row.bind(hub, at: 1)
    var numbers: [Int64] = []
    while try row.step() {
      guard let bytes = row.optionalBytes(1) else { continue }
      var reader = ByteReader(bytes)
      if try reader.expression().isOnly(for: own) { numbers.append(row.integer(0)) }
    }
    return try numbers + directNotifications(to: handles(ofUser: userID, hub: hub), hub: hub)
  }

  /// The user's implicit tag, those of the user's installations, and the tags that no other device
  /// carries.
  private func ownTags(ofUser userID: String, hub: Hub.ID) throws -> Set<Tag> {
    var tags: Set<Tag> = [.user(userID)]
    var registrations: Set<RegistrationID> = []
    var numbers: Set<Int64> = []
    let folded = userID.lowercased()
    var installations: [Int64] = []
    do {
      let row = try connection.statement(
        "SELECT id, public_id, document FROM installation WHERE hub = ?1 AND user_hash = ?2")
      try row.bind(hub, at: 1)
      try row.bind(PreparedInstallation.hash(folded), at: 2)
      while try row.step() {
        guard try InstallationDocument.userID(in: row.bytes(2))?.lowercased() == folded else {
          continue
        }
        installations.append(row.integer(0))
        tags.insert(.installation(row.text(1)))
      }
    }
    for installation in installations {
      for row in try connection.registrationRows(of: installation) {
        registrations.insert(row.number)
        numbers.formUnion(row.tags)
      }
    }
    for number in numbers {
      let row = try connection.statement(
        "SELECT registration FROM registration_tag WHERE tag = ?1")
      try row.bind(number, at: 1)
      var isOwn = true
      while isOwn, try row.step() { isOwn = registrations.contains(row.integer(0)) }
      row.reset()
      guard isOwn else { continue }
      let name = try connection.statement(
        "SELECT name FROM tag WHERE id = ?1 AND kind = \(TagKey.Kind.plain.rawValue)")
      try name.bind(number, at: 1)
      if try name.step() { tags.insert(Tag(rawValue: name.text(0))) }
    }
    return tags
  }

  private func handles(ofUser userID: String, hub: Hub.ID) throws -> Set<String> {
    let row = try connection.statement(
      """
      SELECT document, handle FROM installation
      JOIN registration ON registration.installation = installation.id
      WHERE installation.hub = ?1 AND user_hash = ?2
      """)
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(userID.lowercased()), at: 2)
    var handles: Set<String> = []
    while try row.step() {
      if try InstallationDocument.userID(in: row.bytes(0))?.lowercased() == userID.lowercased() {
        handles.insert(row.text(1))
      }
    }
    return handles
  }

  /// Direct sends that name no device but these. Looks at the targets of all: an index on handles
  /// would cost every direct send more than the rare erasure.
  private func directNotifications(to handles: Set<String>, hub: Hub.ID) throws -> [Int64] {
    var candidates: Set<Int64> = []
    for handle in handles {
      let row = try connection.statement(
        """
        SELECT notification FROM notification_target
        WHERE handle = ?1 AND (SELECT hub FROM notification WHERE id = notification) = ?2
        """)
      try row.bind(handle, at: 1)
      try row.bind(hub, at: 2)
      while try row.step() { candidates.insert(row.integer(0)) }
    }
    return try candidates.sorted().filter { number in
      let row = try connection.statement(
        "SELECT handle FROM notification_target WHERE notification = ?1")
      try row.bind(number, at: 1)
      while try row.step() {
        if !handles.contains(row.text(0)) { return false }
      }
      return true
    }
  }
}
