package import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension Installation {
  /// The JSON to send to a hub, without members that only the hub sets.
  public var jsonData: Data { Data(encoded(byHub: false)) }

  /// The JSON that the hub returns, with members in the recorded order (docs/protocol/rest.md,
  /// section 4.3). It decodes to an equal installation, so it is also used for storage.
  package var hubJSON: [UInt8] { encoded(byHub: true) }

  private func encoded(byHub: Bool) -> [UInt8] {
    JSONWriter.object { writer in
      writer.member("installationId", installationID)
      writer.name("pushChannel")
      writePushChannel(to: &writer)
      if byHub { writer.member("pushChannelExpired", pushChannelExpired) }
      writer.member("platform", platform.rawValue)
      if byHub || expirationTime != nil {
        writer.member(
          "expirationTime", expirationTime.map(WireDate.precise) ?? WireDate.never)
      }
      writer.member("userId", userID)
      writer.tags(tags)
      if !pushVariables.isEmpty {
        writer.name("pushVariables")
        writer.map(pushVariables)
      }
      writer.templates(templates)
      if !secondaryTiles.isEmpty {
        writer.object("secondaryTiles") { writer in
          for (name, tile) in secondaryTiles.sorted(by: { $0.key < $1.key }) {
            writer.object(name) { tile.write(to: &$0, byHub: byHub) }
          }
        }
      }
    }
  }

  private func writePushChannel(to writer: inout JSONWriter) {
    switch pushChannel {
    case .handle(let text): writer.string(text)
    case .subscription(let endpoint, let p256dh, let auth):
      let object = PushChannel.subscriptionJSON(endpoint: endpoint, p256dh: p256dh, auth: auth)
      if writesSubscriptionAsText {
        writer.string(object.jsonText)
      } else {
        writer.value(object)
      }
    }
  }
}

extension PushTemplate {
  /// Writes the template's members.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("body", body)
    if !headers.isEmpty {
      writer.name("headers")
      writer.map(headers)
    }
    writer.member("expiry", expiry)
    writer.tags(tags)
  }

  /// The template as JSON text for a patch.
  package var jsonText: String {
    String(decoding: JSONWriter.object { write(to: &$0) }, as: UTF8.self)
  }
}

extension SecondaryTile {
  fileprivate func write(to writer: inout JSONWriter, byHub: Bool) {
    writer.member("pushChannel", pushChannel)
    if byHub { writer.member("pushChannelExpired", pushChannelExpired) }
    writer.tags(tags)
    writer.templates(templates)
  }

  /// The tile as JSON text for a patch.
  package var jsonText: String {
    String(decoding: JSONWriter.object { write(to: &$0, byHub: false) }, as: UTF8.self)
  }
}

extension JSONWriter {
  /// Writes the member `tags`, unless there are none.
  fileprivate mutating func tags(_ tags: [Tag]) {
    if !tags.isEmpty { array("tags", tags) { $0.string($1.rawValue) } }
  }

  /// Writes the member `templates`, sorted by name, unless there are none.
  fileprivate mutating func templates(_ templates: [String: PushTemplate]) {
    guard !templates.isEmpty else { return }
    object("templates") { writer in
      for (key, template) in templates.sorted(by: { $0.key < $1.key }) {
        writer.object(key) { template.write(to: &$0) }
      }
    }
  }
}

extension Installation {
  /// Decodes an installation as a hub returns it.
  ///
  /// Names may have any letter case and need no quotes; members that are `null` count as absent,
  /// and unknown ones are ignored.
  ///
  /// - Throws: ``WireFormatError`` if the data is not an installation.
  public init(jsonData: Data) throws(WireFormatError) {
    self = try Self.decode(jsonData)
  }

  /// Decodes and validates the body of a PUT (docs/protocol/rest.md, sections 4.1 and 4.2). Members
  /// that only the hub sets get the values of a new installation.
  ///
  /// - Parameters:
  ///   - body: JSON in UTF-8.
  ///   - id: The id in the path, which is kept with its spelling. The body may leave it out or
  ///     differ from it in letter case, as with clients that write UUIDs in the other case; any
  ///     other id is rejected. Apart from this comparison ids are exact: `a` and `A` are two
  ///     installations.
  package static func decodeRequest(
    _ body: some Collection<UInt8>, id: String
  ) throws(WireFormatError) -> Installation {
    var installation = try decode(body, id: id)
    installation.pushChannelExpired = false
    for name in installation.secondaryTiles.keys {
      installation.secondaryTiles[name]?.pushChannelExpired = false
    }
    return try installation.validated()
  }

  /// Decodes an installation without validating its values.
  package static func decode(
    _ body: some Collection<UInt8>, id: String? = nil
  ) throws(WireFormatError) -> Installation {
    try decode(try JSONValue.parse(body), id: id)
  }

  /// Same as ``decode(_:id:)``, for a value in a larger document.
  package static func decode(
    _ value: JSONValue, id: String? = nil
  ) throws(WireFormatError) -> Installation {
    guard case .object(let list) = value else {
      throw .body("An installation must be a JSON object.")
    }
    let members = InstallationMembers(list)
    guard let word = try members.text("platform"),
      let platform = PushPlatform(installationWord: word)
    else {
      throw .body("'Platform' property is not specified or given value is not supported.")
    }
    let own = try members.text("installationId")
    if let id, let own, own != id, own.lowercased() != id.lowercased() {
      throw .body("'InstallationId' differs from the id in the address.")
    }
    guard let id = id ?? own else { throw .installation(["'InstallationId' is required."]) }
    guard let channel = members["pushChannel"] else {
      throw .installation(["'PushChannel' is required."])
    }
    let (pushChannel, isText) = try PushChannel.decode(channel, platform: platform)

    var installation = Installation(
      installationID: id, platform: platform, pushChannel: pushChannel)
    installation.writesSubscriptionAsText = isText
    if let user = try members.text("userId"), !user.isEmpty { installation.userID = user }
    installation.pushChannelExpired =
      try members.isChannelExpired()
    installation.expirationTime = try members.date("expirationTime")
    installation.tags = try members.tags()
    installation.pushVariables = try members.map("pushVariables")
    installation.templates = try members.templates()
    installation.secondaryTiles = try SecondaryTile.decode(try members.object("secondaryTiles"))
    return installation
  }
}

extension PushTemplate {
  /// Decodes a template of an installation, or the value of a patch.
  package static func decode(_ value: JSONValue) throws(WireFormatError) -> PushTemplate {
    guard case .object(let list) = value else {
      throw .body("An item of 'Templates' must be an object with a 'Body'.")
    }
    let members = InstallationMembers(list)
    return PushTemplate(
      body: try members.body(),
      headers: try members.map("headers"), expiry: try members.text("expiry"),
      tags: try members.tags())
  }
}

extension PushTemplate {
  /// Decodes templates by name; those that are `null` count as absent.
  static func decode(
    _ list: [JSONValue.Member]
  ) throws(WireFormatError) -> [String: PushTemplate] {
    var templates: [String: PushTemplate] = [:]
    for member in list where member.value != .null {
      templates[member.name] = try decode(member.value)
    }
    return templates
  }
}

extension SecondaryTile {
  /// Decodes tiles by id; those that are `null` count as absent.
  static func decode(
    _ list: [JSONValue.Member]
  ) throws(WireFormatError) -> [String: SecondaryTile] {
    var tiles: [String: SecondaryTile] = [:]
    for member in list where member.value != .null {
      tiles[member.name] = try decode(member.value)
    }
    return tiles
  }

  /// Decodes a secondary tile of an installation, or the value of a patch.
  package static func decode(_ value: JSONValue) throws(WireFormatError) -> SecondaryTile {
    guard case .object(let list) = value else {
      throw .body("An item of 'SecondaryTiles' must be an object with a 'PushChannel'.")
    }
    let members = InstallationMembers(list)
    return SecondaryTile(
      pushChannel: try members.text("pushChannel") ?? "",
      pushChannelExpired: try members.isChannelExpired(),
      tags: try members.tags(), templates: try members.templates())
  }
}

/// The members of one object by name, in any case of its letters; the last one counts, and `null`
/// as absent.
struct InstallationMembers {
  private let list: [JSONValue.Member]

  init(_ list: [JSONValue.Member]) { self.list = list }

  /// - Parameter name: In ASCII.
  subscript(name: String) -> JSONValue? {
    // By index, because a copy of a member or its value retains its parts.
    for index in list.indices.reversed()
    where list[index].name.utf8.isEqualIgnoringCase(name.utf8) {
      if case .null = list[index].value { return nil }
      return list[index].value
    }
    return nil
  }

  func text(_ name: String) throws(WireFormatError) -> String? {
    guard let value = self[name] else { return nil }
    guard let text = value.scalarText else { throw wrong(name, "a text") }
    return text
  }

  /// The body of a template; one sample in the documentation uses the second name.
  func body() throws(WireFormatError) -> String {
    if let body = try text("body") { return body }
    return try text("bodyTemplate") ?? ""
  }

  /// Whether the channel is expired; the documentation uses the second name, the service the first.
  func isChannelExpired() throws(WireFormatError) -> Bool {
    if let flag = try flag("pushChannelExpired") { return flag }
    return try flag("expiredPushChannel") ?? false
  }

  private func flag(_ name: String) throws(WireFormatError) -> Bool? {
    guard let value = self[name] else { return nil }
    switch value.scalarText?.lowercased() {
    case "true": return true
    case "false": return false
    default: throw wrong(name, "true or false")
    }
  }

  func date(_ name: String) throws(WireFormatError) -> Date? {
    guard let value = self[name] else { return nil }
    // Clients without a date write an empty text.
    if case .string(let text) = value, text.trimmingBlanks.isEmpty { return nil }
    guard case .string(let text) = value, let date = WireDate.parse(text) else {
      throw wrong(name, "a date such as 2030-10-01T10:00:00Z")
    }
    return WireDate.isNever(date) ? nil : date
  }

  func tags() throws(WireFormatError) -> [Tag] {
    guard let value = self["tags"] else { return [] }
    guard let tags = Self.tags(value) else { throw wrong("tags", "an array of texts") }
    return tags
  }

  /// The array's strings as tags; `nil` if the value is not an array of strings.
  static func tags(_ value: JSONValue) -> [Tag]? {
    guard case .array(let items) = value else { return nil }
    var tags: [Tag] = []
    tags.reserveCapacity(items.count)
    for item in items {
      guard case .string(let text) = item else { return nil }
      tags.append(Tag(rawValue: text))
    }
    return tags
  }

  func object(_ name: String) throws(WireFormatError) -> [JSONValue.Member] {
    guard let value = self[name] else { return [] }
    guard case .object(let list) = value else { throw wrong(name, "an object") }
    return list
  }

  func map(_ name: String) throws(WireFormatError) -> [String: String] {
    guard let value = self[name] else { return [:] }
    guard let map = Self.map(value) else { throw wrong(name, "an object of texts") }
    return map
  }

  /// The object's members as strings; `nil` if the value is not an object of scalars.
  static func map(_ value: JSONValue) -> [String: String]? {
    guard case .object(let list) = value else { return nil }
    var map: [String: String] = [:]
    for member in list where member.value != .null {
      guard let text = member.value.scalarText else { return nil }
      map[member.name] = text
    }
    return map
  }

  func templates() throws(WireFormatError) -> [String: PushTemplate] {
    try PushTemplate.decode(try object("templates"))
  }

  private func wrong(_ name: String, _ expected: String) -> WireFormatError {
    .body("'\(name.prefix(1).uppercased() + name.dropFirst())' must be \(expected).")
  }
}

// `Codable` uses the wire format, read and written by the code above.

extension Installation: Codable {
  /// Decodes the form that a hub returns.
  ///
  /// - Throws: ``WireFormatError`` if the value is not an installation.
  public init(from decoder: any Decoder) throws {
    self = try Self.decode(try JSONValue(from: decoder))
  }

  /// Encodes the form that a hub returns, which decodes to an equal installation.
  public func encode(to encoder: any Encoder) throws {
    try JSONValue.parse(hubJSON).encode(to: encoder)
  }
}

extension PushTemplate: Codable {
  /// Decodes the form that an installation contains.
  ///
  /// - Throws: ``WireFormatError`` if the value is not a template.
  public init(from decoder: any Decoder) throws {
    self = try Self.decode(try JSONValue(from: decoder))
  }

  /// Encodes the form that an installation contains.
  public func encode(to encoder: any Encoder) throws {
    try JSONValue.parse(Array(jsonText.utf8)).encode(to: encoder)
  }
}
