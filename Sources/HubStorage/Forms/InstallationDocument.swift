import Foundation
import HubCore
import NotificationHubs
import Wire

/// The stored form of an installation: all but its id, which has a column. Where several
/// installations share a row for the texts of their templates, the document refers to them by
/// number.
enum InstallationDocument {
  private static let version: UInt8 = 1
  /// A document that contains the templates' texts.
  private static let wholeVersion: UInt8 = 2

  /// The form in which a push channel was written; never reassign a number. The third form came
  /// later, so the oldest documents do not have it.
  private enum ChannelForm: UInt8 {
    case handle = 0
    case subscription = 1
    /// A subscription as a string that contains the object.
    case subscriptionText = 2
  }

  /// - Parameter number: Gives the number of a template's body, headers and expiry.
  static func encode(
    _ installation: Installation, number: (PushTemplate) throws -> Int64
  ) rethrows -> [UInt8] {
    var writer = ByteWriter(capacity: 256)
    try encode(installation, as: version, to: &writer) { template, writer in
      writer.write(try number(template))
    }
    return writer.bytes
  }

  /// Encodes with everything included.
  static func encode(_ installation: Installation) -> [UInt8] {
    var writer = ByteWriter()
    encode(installation, as: wholeVersion, to: &writer) { $1.write($0) }
    return writer.bytes
  }

  /// A document that lacks only the numbers of the templates.
  struct Prepared: Sendable {
    /// A hash of everything that is written for an installation, its registrations included.
    let fingerprint: Int64
    /// With templates in place of their numbers.
    fileprivate let bytes: [UInt8]
    let templates: [(place: Range<Int>, template: PushTemplate)]

    /// See ``InstallationDocument/encode(_:number:)``.
    func encode(number: (PushTemplate) throws -> Int64) rethrows -> [UInt8] {
      var writer = ByteWriter(capacity: bytes.count)
      var start = 0
      for (place, template) in templates {
        writer.append(bytes[start..<place.lowerBound])
        writer.write(try number(template))
        start = place.upperBound
      }
      writer.append(bytes[start...])
      return writer.bytes
    }
  }

  /// - Parameter hash: See ``RegistrationIDCoding/contentHash``.
  static func prepare(
    _ installation: Installation, registrations: [RegistrationDraft], hash: SipHash
  ) -> Prepared {
    // With the array's header this stays below 1 KiB, the limit of glibc's memory of each thread.
    var writer = ByteWriter(capacity: 960)
    var templates: [(place: Range<Int>, template: PushTemplate)] = []
    encode(installation, as: version, to: &writer) { template, writer in
      let start = writer.bytes.count
      writer.write(template)
      templates.append((start..<writer.bytes.count, template))
    }
    let end = writer.bytes.count
    for draft in registrations {
      writer.write(draft.platform.rawValue)
      writer.write(draft.channel.stored)
      writer.write(draft.secondaryTileName)
      writer.write(UInt64(draft.tags.count))
      for tag in draft.tags { writer.write(tag.rawValue) }
      writer.write(draft.pushVariables)
      writer.write(draft.expiresAt?.milliseconds ?? .max)
      switch draft.kind {
      case .native: writer.write(false)
      case .template(let template, let name):
        writer.write(true)
        writer.write(name)
        writer.write(template)
      }
    }
    var hash = hash
    return Prepared(
      fingerprint: Int64(bitPattern: hash.finish(with: writer.bytes)),
      bytes: Array(writer.bytes[..<end]), templates: templates)
  }

  private static func encode(
    _ installation: Installation, as version: UInt8, to writer: inout ByteWriter,
    template: (PushTemplate, inout ByteWriter) throws -> Void
  ) rethrows {
    writer.write(version)
    writer.write(installation.userID)
    writer.write(installation.platform.code)
    switch installation.pushChannel {
    case .handle(let text):
      writer.write(ChannelForm.handle.rawValue)
      writer.write(text)
    case .subscription(let endpoint, let p256dh, let auth):
      let isText = installation.writesSubscriptionAsText
      writer.write((isText ? ChannelForm.subscriptionText : .subscription).rawValue)
      writer.write(endpoint)
      writer.write(p256dh)
      writer.write(auth)
    }
    writer.write(installation.pushChannelExpired)
    writer.write(installation.expirationTime != nil)
    if let time = installation.expirationTime {
      // The bit pattern, so that the client's time is kept without rounding.
      writer.write(time.timeIntervalSinceReferenceDate.bitPattern)
    }
    writer.write(installation.tags)
    writer.write(installation.pushVariables)
    try writer.write(installation.templates, template: template)
    writer.write(UInt64(installation.secondaryTiles.count))
    try installation.secondaryTiles.forEachInKeyOrder { id, tile in
      writer.write(id)
      writer.write(tile.pushChannel)
      writer.write(tile.pushChannelExpired)
      writer.write(tile.tags)
      try writer.write(tile.templates, template: template)
    }
  }

  /// The user's id is within this many bytes at the beginning; it is as long as a tag at most.
  static let userIDLimit = 16 + 4 * Tag.maximumLength

  /// The user's id alone.
  /// - Parameter bytes: The first ``userIDLimit``, or more.
  static func userID(in bytes: [UInt8]) throws -> String? {
    var reader = ByteReader(bytes)
    let form = try reader.byte()
    guard form == version || form == wholeVersion else { throw unknownForm }
    return try reader.optionalText()
  }

  private static let unknownForm = StoreError.corrupt("an installation has an unknown form")

  /// - Parameter template: Gives the template of a number, without tags.
  static func decode(
    _ bytes: [UInt8], id: String, template: (Int64) throws -> PushTemplate
  ) throws -> Installation {
    try decode(bytes, id: id, version: version) { try template(try $0.signedNumber()) }
  }

  /// Reads what ``encode(_:)`` wrote.
  static func decode(_ bytes: [UInt8], id: String) throws -> Installation {
    try decode(bytes, id: id, version: wholeVersion) { try $0.template() }
  }

  private static func decode(
    _ bytes: [UInt8], id: String, version: UInt8,
    template: (inout ByteReader) throws -> PushTemplate
  ) throws -> Installation {
    var reader = ByteReader(bytes)
    guard try reader.byte() == version else { throw unknownForm }
    let user = try reader.optionalText()
    let platform = try PushPlatform(code: try reader.signedNumber())
    guard let form = ChannelForm(rawValue: try reader.byte()) else { throw unknownForm }
    let channel: PushChannel =
      switch form {
      case .handle: .handle(try reader.text())
      case .subscription, .subscriptionText:
        .subscription(
          endpoint: try reader.text(), p256dh: try reader.text(), auth: try reader.text())
      }
    var installation = Installation(
      installationID: id, userID: user, platform: platform, pushChannel: channel,
      pushChannelExpired: try reader.flag())
    installation.writesSubscriptionAsText = form == .subscriptionText
    if try reader.flag() {
      installation.expirationTime = Date(
        timeIntervalSinceReferenceDate: Double(bitPattern: try reader.number()))
    }
    installation.tags = try reader.tags()
    installation.pushVariables = try reader.words()
    installation.templates = try reader.templates(template)
    for _ in 0..<(try reader.count()) {
      let id = try reader.text()
      installation.secondaryTiles[id] = SecondaryTile(
        pushChannel: try reader.text(), pushChannelExpired: try reader.flag(),
        tags: try reader.tags(), templates: try reader.templates(template))
    }
    return installation
  }
}

extension ByteWriter {
  fileprivate mutating func write(_ tags: [Tag]) {
    write(UInt64(tags.count))
    for tag in tags { write(tag.rawValue) }
  }

  /// Writes the template in full, except its tags.
  mutating func write(_ template: PushTemplate) {
    write(template.body)
    write(template.headers)
    write(template.expiry)
  }

  fileprivate mutating func write(
    _ templates: [String: PushTemplate], template: (PushTemplate, inout ByteWriter) throws -> Void
  ) rethrows {
    write(UInt64(templates.count))
    try templates.forEachInKeyOrder { name, value in
      write(name)
      try template(value, &self)
      write(value.tags)
    }
  }
}

extension PushTemplate {
  /// The form in a row of its own: all but the tags.
  var stored: [UInt8] {
    var writer = ByteWriter()
    writer.write(self)
    return writer.bytes
  }

  /// Reads ``stored`` back.
  init(stored bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    self = try reader.template()
  }
}

extension ByteReader {
  /// Reads a template without its tags.
  fileprivate mutating func template() throws -> PushTemplate {
    PushTemplate(body: try text(), headers: try words(), expiry: try optionalText())
  }

  fileprivate mutating func tags() throws -> [Tag] {
    try (0..<(try count())).map { _ in Tag(rawValue: try text()) }
  }

  fileprivate mutating func templates(
    _ template: (inout ByteReader) throws -> PushTemplate
  ) throws -> [String: PushTemplate] {
    var templates: [String: PushTemplate] = [:]
    for _ in 0..<(try count()) {
      let name = try text()
      var value = try template(&self)
      value.tags = try tags()
      templates[name] = value
    }
    return templates
  }
}
