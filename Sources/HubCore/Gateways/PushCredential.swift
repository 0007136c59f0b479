package import Foundation
package import NotificationHubs

/// The credential by which a hub authenticates at a push service (docs/protocol/rest.md, section
/// 8.1, table of properties).
package struct PushCredential: Hashable, Sendable, CustomStringConvertible {
  package let platform: PushPlatform
  /// By property name as in docs/protocol/rest.md, section 8.1: `Token`, `KeyId`, `AppName`,
  /// `AppId`, `Endpoint`…
  package var properties: [String: String]
  package var modifiedAt: Date

  package init(platform: PushPlatform, properties: [String: String], modifiedAt: Date) {
    self.platform = platform
    self.properties = properties
    self.modifiedAt = modifiedAt
  }

  /// The value of a property, its name compared without regard to letter case.
  package subscript(name: String) -> String? {
    if let exact = properties[name] { return exact }
    let folded = name.lowercased()
    return properties.first { $0.key.lowercased() == folded }?.value
  }

  /// The value of a property without white space around it; `nil` when nothing is left.
  package func text(_ name: String) -> String? {
    guard let text = self[name] else { return nil }
    // Foundation looks at every character of a key.
    let ends = [text.utf8.first, text.utf8.last]
    if ends.allSatisfy({ $0.map { (0x21...0x7E).contains($0) } ?? false }) { return text }
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    return trimmed.isEmpty ? nil : trimmed
  }

  /// As ``text(_:)``, for a required property.
  /// - Parameter advice: Advice as a sentence, or the expected value.
  package func text(
    _ name: String, orSay advice: String
  ) throws(CredentialError) -> String {
    guard let text = text(name) else { throw CredentialError("\(name) is missing\(advice)") }
    return text
  }

  /// A description without the secrets.
  package var description: String { "\(platform.rawValue) credential" }
}
