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
          secondaryTiles.forEachInKeyOrder { name, tile in
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
      templates.forEachInKeyOrder { key, template in
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
    self = try Self.decode(Array(jsonData))
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
    _ body: [UInt8], id: String
  ) throws(WireFormatError) -> Installation {
    var installation = try decode(body, id: id)
    installation.forgetExpiry()
    return try installation.validated()
  }

  /// Removes what a request says of expired channels: only the hub knows the push services' replies.
  package mutating func forgetExpiry() {
    pushChannelExpired = false
    secondaryTiles = secondaryTiles.mapValues(\.asRequested)
  }

  /// Decodes an installation without validating its values.
  package static func decode(
    _ body: [UInt8], id: String? = nil
  ) throws(WireFormatError) -> Installation {
    try InstallationReader.read(body) { reader throws(SyntaxFault) in
      try reader.installation(id: id)
    }
  }

  /// Same as ``decode(_:id:)``, for a value in a larger document, which is written again to be read.
  package static func decode(_ value: JSONValue) throws(WireFormatError) -> Installation {
    try decode(value.jsonBytes)
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
    self = try InstallationReader.template(in: try JSONValue(from: decoder).jsonBytes)
  }

  /// Encodes the form that an installation contains.
  public func encode(to encoder: any Encoder) throws {
    try JSONValue.parse(Array(jsonText.utf8)).encode(to: encoder)
  }
}

extension SecondaryTile {
  /// See ``Installation/forgetExpiry()``.
  var asRequested: SecondaryTile {
    var tile = self
    tile.pushChannelExpired = false
    return tile
  }
}
