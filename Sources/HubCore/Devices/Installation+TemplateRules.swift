import Foundation
import NotificationHubs

/// The rules that need the template language or a URI reader (spec `rest-api.md` 3.11, 4.2); the
/// vocabulary's own are in ``NotificationHubs``.
extension Installation {
  /// The most templates, those of secondary tiles included; each is a registration of its own.
  static let templateLimit = 100

  /// One line for each fault.
  var hubFaults: [String] {
    var faults: [String] = []
    switch (platform, pushChannel) {
    case (.wns, .handle(let uri)), (.mpns, .handle(let uri)),
      (.browser, .subscription(let uri, _, _)):
      if !Self.isAbsolute(uri) { faults.append("'PushChannel' must be an absolute URI.") }
    default: break
    }
    for (name, template) in templates.sorted(by: { $0.key < $1.key }) {
      faults += self.faults(of: template, named: "template '\(name)'")
    }
    for (id, tile) in secondaryTiles.sorted(by: { $0.key < $1.key }) {
      if !tile.pushChannel.isEmpty, !Self.isAbsolute(tile.pushChannel) {
        faults.append("'PushChannel' of the secondary tile '\(id)' must be an absolute URI.")
      }
      for (name, template) in tile.templates.sorted(by: { $0.key < $1.key }) {
        faults += self.faults(of: template, named: "template '\(name)' of the tile '\(id)'")
      }
    }
    let count = secondaryTiles.values.reduce(templates.count) { $0 + $1.templates.count }
    if count > Self.templateLimit {
      faults.append("'Templates' has \(count) items; at most \(Self.templateLimit) are allowed.")
    }
    return faults
  }

  private func faults(of template: PushTemplate, named name: String) -> [String] {
    var faults = CompiledTemplate.faults(in: template).map { "The \(name) is invalid: \($0)." }
    guard platform == .apns else { return faults }
    for (header, value) in template.headers.sorted(by: { $0.key < $1.key }) {
      let folded = header.lowercased()
      let isExpression = TemplateExpression.isExpression(value.utf8.first)
      if !folded.hasPrefix("apns-") {
        faults.append("The \(name) has the header '\(header)'; Apple's begin with 'apns-'.")
      } else if folded == "apns-priority", !isExpression, UInt8(value) == nil {
        faults.append("The header 'apns-priority' of the \(name) must be 0 to 255.")
      } else if folded == "apns-expiration", !isExpression, Int64(value) == nil {
        faults.append("The header 'apns-expiration' of the \(name) must be a whole number.")
      }
    }
    if let expiry = template.expiry, !expiry.isEmpty,
      !TemplateExpression.isExpression(expiry.utf8.first), ExpiryText.seconds(expiry) == nil
    {
      faults.append("'Expiry' of the \(name) must be a date, 0 or an expression.")
    }
    return faults
  }

  /// A scheme, `://` and a host.
  private static func isAbsolute(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text) else { return false }
    return parts.scheme != nil && parts.host?.isEmpty == false
  }
}
