import NotificationHubs
import Wire

/// The rules that need the template language or a URI parser (docs/protocol/rest.md, sections 3.11
/// and 4.2); the others are in ``NotificationHubs``.
extension Installation {
  /// Maximum number of templates, including those of secondary tiles; each is a registration of its
  /// own.
  static let templateLimit = 100

  /// Maximum size of all names and values of the push variables in bytes, the same as for a
  /// message: each template's registration contains a copy.
  static let variablesLimit = NotificationRequest.maxBodyBytes

  /// Number of different tags, including those of its templates and tiles, if it exceeds `limit`. A
  /// template's name, which the hub adds to its tags, does not count.
  func tagCount(above limit: Int) -> Int? {
    // Repeats included, because comparing tags takes longer.
    var most = templates.values.reduce(tags.count) { $0 + $1.tags.count }
    for tile in secondaryTiles.values {
      most += tile.templates.values.reduce(tile.tags.count) { $0 + $1.tags.count }
    }
    guard most > limit else { return nil }
    let templates = Array(templates) + secondaryTiles.values.flatMap { Array($0.templates) }
    let own = tags + secondaryTiles.values.flatMap(\.tags)
    var all = Set(own)
    for (name, template) in templates {
      let name = Tag(rawValue: name)
      all.formUnion(template.tags.filter { $0 != name })
    }
    return all.count > limit ? all.count : nil
  }

  /// One line for each fault.
  ///
  /// - Parameter tagLimit: Maximum number of different tags.
  func hubFaults(tagLimit: Int) -> [String] {
    var faults: [String] = []
    if let count = tagCount(above: tagLimit) {
      faults.append(
        "The installation has \(count) different tags, those of its templates and tiles included; "
          + "at most \(tagLimit) are allowed. Whoever runs this server can raise tagsPerInstallation."
      )
    }
    switch (platform, pushChannel) {
    case (.wns, .handle(let uri)), (.mpns, .handle(let uri)),
      (.browser, .subscription(let uri, _, _)):
      if !uri.isAbsoluteURI { faults.append("'PushChannel' must be an absolute URI.") }
    default: break
    }
    // A local copy, so that the closures do not copy the whole installation.
    let platform = platform
    templates.forEachInKeyOrder { name, template in
      faults += template.hubFaults(on: platform, named: "template '\(name)'")
    }
    secondaryTiles.forEachInKeyOrder { id, tile in
      if !tile.pushChannel.isEmpty, !tile.pushChannel.isAbsoluteURI {
        faults.append("'PushChannel' of the secondary tile '\(id)' must be an absolute URI.")
      }
      tile.templates.forEachInKeyOrder { name, template in
        faults += template.hubFaults(
          on: platform, named: "template '\(name)' of the tile '\(id)'")
      }
    }
    let count = secondaryTiles.values.reduce(templates.count) { $0 + $1.templates.count }
    let size = pushVariables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    if size > Self.variablesLimit {
      faults.append(
        "'PushVariables' has \(size) bytes; at most \(Self.variablesLimit) are allowed.")
    }
    if count > Self.templateLimit {
      faults.append("'Templates' has \(count) items; at most \(Self.templateLimit) are allowed.")
    }
    return faults
  }
}

extension PushTemplate {
  /// The faults of a template for which a hub refuses it: malformed expressions, more headers than
  /// a send may have, and on Apple's platform header values and expiries that can never be sent.
  /// One line for each fault.
  ///
  /// - Parameter name: The name of the template in the faults.
  func hubFaults(on platform: PushPlatform, named name: String) -> [String] {
    var faults = CompiledTemplate.faults(in: self).map { "The \(name) is invalid: \($0)." }
    if headers.count > PassThroughHeaders.maxCount {
      faults.append(
        "The \(name) has \(headers.count) headers; at most \(PassThroughHeaders.maxCount) are "
          + "allowed.")
    }
    let size = headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    if size > PassThroughHeaders.maxBytes {
      faults.append(
        "The headers of the \(name) have \(size) bytes; at most \(PassThroughHeaders.maxBytes) are "
          + "allowed.")
    }
    guard platform == .apns else { return faults }
    for (header, value) in headers.sorted(by: { $0.key < $1.key }) {
      let folded = header.lowercased()
      let isExpression = TemplateExpression.isExpression(value.utf8.first)
      if folded == WireName.olderApnsPriority.lowercased() {
        if !isExpression, UInt8(value) == nil {
          faults.append("'Priority' of the \(name) must be 0 to 255, or an expression.")
        }
      } else if folded == WireName.contentType.lowercased() {
        continue  // Not sent; the JavaScript client writes it on every platform.
      } else if !folded.hasPrefix("apns-") {
        faults.append("The \(name) has the header '\(header)'; Apple's begin with 'apns-'.")
      } else if folded == "apns-priority", !isExpression, UInt8(value) == nil {
        faults.append("The header 'apns-priority' of the \(name) must be 0 to 255.")
      } else if folded == "apns-expiration", !isExpression, Int64(value) == nil {
        faults.append("The header 'apns-expiration' of the \(name) must be a whole number.")
      }
    }
    if let expiry, !expiry.isEmpty, !TemplateExpression.isExpression(expiry.utf8.first),
      ExpiryText.seconds(expiry) == nil
    {
      faults.append("'Expiry' of the \(name) must be a date, 0 or an expression.")
    }
    return faults
  }
}
