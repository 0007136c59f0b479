#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A hub as its owner sees it (spec `rest-api.md` section 8).
public struct HubDescription: Hashable, Sendable {
  /// What a hub has been used for lately; counted by the hub.
  public struct Usage: Hashable, Sendable {
    public var dailyOperations: Int64
    public var dailyMaxActiveDevices: Int64
    public var dailyMaxActiveRegistrations: Int64
    public var dailyAPICalls: Int64

    public init(
      dailyOperations: Int64 = 0, dailyMaxActiveDevices: Int64 = 0,
      dailyMaxActiveRegistrations: Int64 = 0, dailyAPICalls: Int64 = 0
    ) {
      self.dailyOperations = dailyOperations
      self.dailyMaxActiveDevices = dailyMaxActiveDevices
      self.dailyMaxActiveRegistrations = dailyMaxActiveRegistrations
      self.dailyAPICalls = dailyAPICalls
    }
  }

  /// Starts with a letter; letters, digits and `-._`, at most 260.
  public var name: String
  /// How long a registration lives after its last write, in seconds, at least a day; `nil` is
  /// forever.
  public var registrationTTL: TimeInterval?
  /// At most 12. `nil` on creation lets the hub make two, on update keeps those that are there.
  public var authorizationRules: [AuthorizationRule]?
  public var credentials: [PushPlatform: HubCredential]
  /// A disabled hub refuses devices and sends.
  public var isDisabled: Bool
  /// At most 1024 characters of your own.
  public var userMetadata: String?
  /// `nil` where the hub does not say.
  public var usage: Usage?

  public init(
    name: String, registrationTTL: TimeInterval? = nil,
    authorizationRules: [AuthorizationRule]? = nil,
    credentials: [PushPlatform: HubCredential] = [:], isDisabled: Bool = false,
    userMetadata: String? = nil, usage: Usage? = nil
  ) {
    self.name = name
    self.registrationTTL = registrationTTL
    self.authorizationRules = authorizationRules
    self.credentials = credentials
    self.isDisabled = isDisabled
    self.userMetadata = userMetadata
    self.usage = usage
  }

  /// The description, once it is sure that a hub takes it (spec `rest-api.md` 8.1).
  ///
  /// A credential must have the properties of its platform (those of `apns` are left to the hub);
  /// whether the push service accepts it is not checked here.
  /// - Throws: ``WireFormatError`` with what is wrong.
  public func validated() throws(WireFormatError) -> HubDescription {
    guard Self.isName(name) else {
      throw WireFormatError(
        "The name of a hub must start with a letter, then have letters, digits and -._, and at "
          + "most 260 characters.")
    }
    if let registrationTTL, registrationTTL < 86_400 {
      throw WireFormatError("'RegistrationTtl' must be at least one day.")
    }
    if let userMetadata, userMetadata.utf16.count > 1024 {
      throw WireFormatError("'UserMetadata' must have at most 1024 characters.")
    }
    let rules = authorizationRules ?? []
    guard rules.count <= AuthorizationRule.maximumCount else {
      throw WireFormatError(
        "A hub can have at most \(AuthorizationRule.maximumCount) authorization rules.")
    }
    for rule in rules {
      if let fault = rule.fault { throw WireFormatError(fault) }
    }
    guard Set(rules.map { $0.keyName.lowercased() }).count == rules.count else {
      throw WireFormatError("Two authorization rules have the same 'KeyName'.")
    }
    for platform in PushPlatform.allCases {
      if let fault = credentials[platform]?.fault(platform) { throw WireFormatError(fault) }
    }
    return self
  }

  /// Whether a hub can have this name: one segment of a path (spec `rest-api.md` 1.1, without the
  /// names of several segments).
  package static func isName(_ name: String) -> Bool {
    guard (1...260).contains(name.utf8.count), let first = name.utf8.first, isLetter(first) else {
      return false
    }
    return name.utf8.allSatisfy {
      isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || "-._".utf8.contains($0)
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
