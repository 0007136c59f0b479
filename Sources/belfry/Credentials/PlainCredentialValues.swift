import Foundation
import HubCore
import NotificationHubs

/// Credentials that consist of names and secrets. Their fields are those of the sheet of platforms.
enum PlainCredentialValues {
  typealias Field = CredentialTraits.Field

  /// The platforms with such a credential. Those of the others are files.
  static let platforms = CredentialPlatform.served.filter {
    ![.apns, .fcmv1, .browser].contains($0)
  }

  /// The platforms that have a field with this option.
  static func platforms(with option: String) -> [PushPlatform] {
    platforms.filter { platform in
      families(of: platform).joined().contains { $0.field.options.contains(option) }
    }
  }

  /// The names of those platforms, for the help of the option.
  static func words(with option: String) -> String {
    platforms(with: option).map(\.word).joined(separator: ", ")
  }

  /// The alternative ways to authenticate at a platform.
  static func families(of platform: PushPlatform) -> [[(field: Field, isOptional: Bool)]] {
    let credential = platform.traits.credential
    return credential.ways.filter { $0.name != nil }.map(credential.fields)
  }

  /// - Parameters:
  ///   - name: The name of a field in the source of the values.
  ///   - value: The value that was given for it.
  /// - Throws: ``CredentialError`` if a value is missing, or belongs to another way.
  static func credential(
    _ platform: PushPlatform, at now: Date, name: (Field) -> String, value: (Field) -> String?
  ) throws(CredentialError) -> PushCredential {
    let families = families(of: platform)
    // The identifying fields select the way; secrets may have the same name in both.
    let begun = families.filter { family in
      family.contains { !$0.field.isSecret && !$0.isOptional && value($0.field) != nil }
    }
    guard begun.count < 2 else {
      throw CredentialError(
        begun.map { family in
          family.filter { !$0.field.isSecret && !$0.isOptional }.map { name($0.field) }
            .joined(separator: ", ")
        }.joined(separator: " and ") + " exclude each other")
    }
    var properties: [String: String] = [:]
    for (field, isOptional) in begun.first ?? families.first ?? [] {
      if let text = value(field), !text.isEmpty {
        properties[field.property] = text
      } else if !isOptional {
        let ways = families.map { family in
          family.filter { !$0.isOptional }.map { name($0.field) }.joined(separator: ", ")
        }
        throw CredentialError(
          "\(name(field)) is missing; a credential for \(platform.rawValue) needs "
            + ways.joined(separator: ", or "))
      }
    }
    return PushCredential(platform: platform, properties: properties, modifiedAt: now)
  }
}

/// The names of a credential's properties in the user's input, so that errors use those names.
enum CredentialNames: Sendable {
  case options
  /// The keys in a hub's section of a configuration.
  case keys

  func fault(_ error: CredentialError, of platform: PushPlatform) -> CredentialError {
    let names = names(of: platform)
    var text = ""
    var word = ""
    var before: Character?
    func close() {
      // `AuthKey_<KeyId>.p8` is a file name.
      text += before == "<" ? word : names[word] ?? word
      word = ""
    }
    for character in error.description {
      if character.isLetter || character.isNumber || character == "_" {
        word.append(character)
      } else {
        close()
        text.append(character)
        before = character
      }
    }
    close()
    return CredentialError(text, isExpiry: error.isExpiry)
  }

  private func names(of platform: PushPlatform) -> [String: String] {
    var names: [String: String] = [:]
    for field in platform.traits.credential.fields {
      guard let option = field.options.first else { continue }
      names[field.property] = self == .options ? option : field.key
    }
    return names
  }
}
