import Wire

extension HubCredential {
  /// What the credential lacks to be one of this platform; `nil` if it is whole (spec
  /// `rest-api.md` 8.1, table of properties).
  ///
  /// Apple's is not looked at: which properties it needs depends on their values, and its gateway
  /// checks both.
  func fault(_ platform: PushPlatform) -> String? {
    var families = Self.requiredNames(platform)
    // No credential at all is legal for the service that has unauthenticated senders.
    if platform == .mpns, properties.isEmpty { families = [] }
    guard let first = families.first, !families.contains(where: { lacking($0) == nil }) else {
      return nil
    }
    // The family that was begun is the one that was meant.
    let meant = families.first { names in names.contains { self[$0] != nil } } ?? first
    return lacking(meant).map { "'\(Self.element(platform))' must have the property '\($0)'." }
  }

  /// The first of these properties that is not there.
  private func lacking(_ names: [String]) -> String? {
    names.first { name in
      guard let value = self[name] else { return true }
      // The password of a certificate may be empty.
      return name != Self.password && value.trimmingBlanks.isEmpty
    }
  }

  static let password = "CertificateKey"

  /// The properties that must be there together; of several families one is enough.
  private static func requiredNames(_ platform: PushPlatform) -> [[String]] {
    switch platform {
    case .apns: []
    case .wns:
      [
        ["PackageSid", "SecretKey"], ["WnsCertificate", password],
        ["TenantId", "ClientId", "ClientSecret"],
      ]
    case .gcm: [["GoogleApiKey"]]
    case .fcmv1: [["PrivateKey", "ProjectId", "ClientEmail"]]
    case .mpns: [["MpnsCertificate", password]]
    case .adm: [["ClientId", "ClientSecret"]]
    case .baidu: [["BaiduApiKey", "BaiduSecretKey"]]
    case .browser: [["Subject", "VapidPublicKey", "VapidPrivateKey"]]
    case .xiaomi: [["AppSecret"]]
    }
  }
}
