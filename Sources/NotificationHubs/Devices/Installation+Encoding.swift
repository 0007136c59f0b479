package import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension Installation {
  /// The JSON that is sent to a hub: without what only the hub decides.
  public var jsonData: Data { Data(encoded(byHub: false)) }

  /// The JSON that the hub returns, members in the recorded order (spec `rest-api.md` 4.3). It
  /// reads back to an equal installation, so it also serves to store one.
  package var hubJSON: [UInt8] { encoded(byHub: true) }

  private func encoded(byHub: Bool) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.name("installationId")
    writer.string(installationID)
    writer.name("pushChannel")
    writePushChannel(to: &writer)
    if byHub {
      writer.name("pushChannelExpired")
      writer.bool(pushChannelExpired)
    }
    writer.name("platform")
    writer.string(platform.rawValue)
    if byHub || expirationTime != nil {
      writer.name("expirationTime")
      writer.string(expirationTime.map(WireDate.precise) ?? WireDate.never)
    }
    if let userID {
      writer.name("userId")
      writer.string(userID)
    }
    writer.tags(tags)
    if !pushVariables.isEmpty {
      writer.name("pushVariables")
      writer.map(pushVariables)
    }
    writer.templates(templates)
    if !secondaryTiles.isEmpty {
      writer.name("secondaryTiles")
      writer.beginObject()
      for (name, tile) in secondaryTiles.sorted(by: { $0.key < $1.key }) {
        writer.name(name)
        tile.write(to: &writer, byHub: byHub)
      }
      writer.endObject()
    }
    writer.endObject()
    return writer.bytes
  }

  private func writePushChannel(to writer: inout JSONWriter) {
    switch pushChannel {
    case .handle(let text): writer.string(text)
    case .subscription(let endpoint, let p256dh, let auth):
      let object = PushChannel.subscriptionJSON(endpoint: endpoint, p256dh: p256dh, auth: auth)
      if writesSubscriptionAsText {
        writer.string(String(decoding: object.jsonBytes, as: UTF8.self))
      } else {
        writer.value(object)
      }
    }
  }
}

extension PushTemplate {
  /// The template as JSON.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.name("body")
    writer.string(body)
    if !headers.isEmpty {
      writer.name("headers")
      writer.map(headers)
    }
    if let expiry {
      writer.name("expiry")
      writer.string(expiry)
    }
    writer.tags(tags)
    writer.endObject()
  }

  /// The template as JSON text, as a patch carries it.
  package var jsonText: String {
    var writer = JSONWriter()
    write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension SecondaryTile {
  fileprivate func write(to writer: inout JSONWriter, byHub: Bool) {
    writer.beginObject()
    writer.name("pushChannel")
    writer.string(pushChannel)
    if byHub {
      writer.name("pushChannelExpired")
      writer.bool(pushChannelExpired)
    }
    writer.tags(tags)
    writer.templates(templates)
    writer.endObject()
  }

  /// The tile as JSON text, as a patch carries it.
  package var jsonText: String {
    var writer = JSONWriter()
    write(to: &writer, byHub: false)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

extension JSONWriter {
  /// The member `tags`, left out when there are none.
  fileprivate mutating func tags(_ tags: [Tag]) {
    guard !tags.isEmpty else { return }
    name("tags")
    beginArray()
    for tag in tags { string(tag.rawValue) }
    endArray()
  }

  /// The member `templates`, sorted by name; left out when there are none.
  fileprivate mutating func templates(_ templates: [String: PushTemplate]) {
    guard !templates.isEmpty else { return }
    name("templates")
    beginObject()
    for (key, template) in templates.sorted(by: { $0.key < $1.key }) {
      name(key)
      template.write(to: &self)
    }
    endObject()
  }
}
