import Cryptography
package import Foundation
package import HubCore
package import NotificationHubs
import Wire

/// An app that push services know, with the credentials that its hub may have.
package struct SimulatedApp: Sendable {
  /// One of an app's credentials for a service.
  package enum Credential: Int, CaseIterable, Sendable {
    /// Its key or secret is not the service's.
    case wrong
    case first
    /// As good as the first: what that is replaced by.
    case second
    /// The first one's key or secret, with an address at which nobody answers.
    case astray

    /// Which key or secret it has, and whose name; 0 is not the service's.
    fileprivate var key: Int { self == .astray ? Self.first.rawValue : rawValue }
  }

  /// From 1.
  package let number: Int

  package init(number: Int) { self.number = number }

  fileprivate static let team = "SIMULATION"

  fileprivate var bundleID: String { "com.example.app\(number)" }
  fileprivate var project: String { "project-\(number)" }
  fileprivate var packageSID: String { "ms-app://s-1-15-2-\(number)" }

  /// The id of the key that signs. The wrong key has the name of the first.
  fileprivate func keyID(_ kind: Credential) -> String {
    "KEY" + String(1_000_000 + number * 10 + max(1, kind.key))
  }

  fileprivate func account(_ kind: Credential) -> String {
    "hub-\(max(1, kind.key))@\(project).iam.gserviceaccount.com"
  }

  /// The name that a service has for one of its credentials (``ServiceCall/credential``).
  func name(_ kind: Credential, at service: SimulatedService) -> String {
    switch service {
    case .apns: keyID(kind)
    case .fcm, .fcmTokens: account(kind)
    case .wns, .wnsTokens: packageSID
    case .webPush: subscriptionKey(kind)
    }
  }

  /// - Parameter platform: One that has a simulated service.
  package func credential(
    _ platform: PushPlatform, _ kind: Credential = .first, modifiedAt: Date
  ) -> PushCredential {
    let keys = Keys.all
    let pair = keys.pairs[kind.key]
    var properties: [String: String] =
      switch platform {
      case .apns:
        [
          "Token": keys.apns[kind == .wrong ? 0 : 1].pem, "KeyId": keyID(kind),
          "AppId": Self.team, "AppName": bundleID, "Endpoint": "https://api.push.apple.com",
        ]
      case .fcmv1:
        [
          "ProjectId": project, "ClientEmail": account(kind),
          "PrivateKey": keys.google[kind == .wrong ? 0 : 1].pem,
        ]
      case .wns: ["PackageSid": packageSID, "SecretKey": "secret-\(kind.key)"]
      case .browser:
        [
          "VapidPublicKey": pair.publicText, "VapidPrivateKey": pair.privateText,
          "Subject": "mailto:ops@example.com",
        ]
      default: [:]
      }
    if kind == .astray {
      // A host of the vendor's: others are refused when the credential is set.
      switch platform {
      case .apns: properties["Endpoint"] = "https://nowhere.push.apple.com"
      case .fcmv1: properties["TokenUri"] = "https://www.googleapis.com/nowhere"
      default: break
      }
    }
    return PushCredential(platform: platform, properties: properties, modifiedAt: modifiedAt)
  }

  /// The application server key that browsers subscribe with.
  package func subscriptionKey(_ kind: Credential = .first) -> String {
    Keys.all.pairs[kind.key].publicText
  }

  /// Reads an application server key, unless it is one of the apps'.
  static func publicKey(_ text: String) -> P256PublicKey? {
    if let pair = Keys.all.pairs.first(where: { $0.publicText == text }) { return pair.known }
    return Base64URL.decode(text).flatMap { try? P256PublicKey(point: $0) }
  }

  /// The keys of all apps, made once for the process: making them takes longer than many a life. At
  /// 0 stands what no service knows.
  fileprivate struct Keys: Sendable {
    let apns: [(pem: String, key: P256PrivateKey, known: P256PublicKey)]
    let google: [(pem: String, key: RSAPrivateKey, known: RSAPublicKey)]
    let pairs:
      [(publicText: String, privateText: String, key: P256PrivateKey, known: P256PublicKey)]

    static let all: Keys = {
      // Impossible, but for a library that makes no keys at all: nothing could be lived then.
      do { return try Keys() } catch { fatalError("keys cannot be made: \(error)") }
    }()

    init() throws {
      // Read again from the text that credentials have: what is in use is not read once more.
      apns = try (4...5).map { (number: UInt8) in
        let pem = try P256PrivateKey(scalar: [UInt8](repeating: number, count: 32)).pem()
        let key = try P256PrivateKey(pem: pem)
        return (pem, key, try key.publicKey())
      }
      google = try Self.small.map { text in
        let pem = try RSAPrivateKey(pem: text).pem()
        let key = try RSAPrivateKey(pem: pem)
        return (pem, key, try key.publicKey())
      }
      // A sender is known by its key, so the keys are the same in each process.
      pairs = try (1...3).map { (number: UInt8) in
        let key = try P256PrivateKey(scalar: [UInt8](repeating: number, count: 32))
        let known = try key.publicKey()
        return (Base64URL.encode(known.point), Base64URL.encode(try key.scalar()), key, known)
      }
    }

    /// Keys of 512 bits, which protect nothing: to sign with one of 2048 takes longer than a tenth of
    /// a life.
    private static let small = [
      """
      MIIBUwIBADANBgkqhkiG9w0BAQEFAASCAT0wggE5AgEAAkEAsdHzA5YWoqCZg7OTJAkWkfWMtKNcfPZtSdAOGvCh
      IrjJ+Z2lS1K+4tX5TuUbUcIVLRlwGteyuITsFn8XbLEilQIDAQABAkB8uKR5nHkN4hUqwfZvbQxuncruHDLP10w6
      XHq4PJTYs5YI2Ax+TSWrv3iELr8J/35vQDLbRuMqqKHB91/QGi0BAiEA4NUlTZ/df4ATr+aWradx4wwO1M9bRbVu
      azWgibI5xcECIQDKeGzt5EnKi1XekdFb/XKPnvDrunWoIbyE86R2X7/Z1QIgYeqyKlJbZvHioRLtwIdSRC22L9x2
      xa80faCHYDCslIECIBBqx1pawmj791B+vl0ZJerjVmGm0td5NNIK93DpvqKpAiBtIrY8T3fYFvdBytbH+Y36mGDT
      LqnncdC3jiHa1OdewA==
      """,
      """
      MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEAp9Q5Vlz6L8BkSPHJlZ/qkmdF9dFn2wwa7NxcqCV9
      BBWklDpiXvasoRnELEBbaZwP9xQgAQjgrRTpQtHQXUq3+wIDAQABAkA0TrbYLf5kJ6iZ+5ICqmbn3nw1k2C1Kt6x
      eDUAyz5dqQf+vrJQp+0+UDiOxkQPGsNsoDntWqatn6AsoQpOIlJRAiEA0LNbsaXzalbW6hHMgJxNvAZowCbwaCWC
      8C+H30eP+i0CIQDN3YcFWpxdKG26qHEP2YclZmjEUnSp2y/Xe8yZfT6bxwIhAMSlu+iQLeQtHyQ+0Sr+HGDmyR0F
      k9EOR2p53tUMYSWhAiBew5LbzBIeb/XS7qbc/O1RMgsYFDzP0636K2rLXPPtEQIhAMm3Xa18eTbFtSd04n4WOiKT
      eGNfm/u56WtqmJMVQO3L
      """,
    ]
  }
}

extension SimulatedServices.State {
  /// Lets the services know an app and its credentials, but not the wrong ones.
  package mutating func add(_ app: SimulatedApp) {
    let keys = SimulatedApp.Keys.all
    for kind in [SimulatedApp.Credential.first, .second] {
      apnsKeys[app.keyID(kind)] = SimulatedServices.APNsKey(
        team: SimulatedApp.team, key: keys.apns[1].known, topics: [app.bundleID])
      accounts[app.account(kind)] = SimulatedServices.ServiceAccount(
        project: app.project, key: keys.google[1].known)
      applicationKeys.insert(app.subscriptionKey(kind))
      windowsSecrets[app.packageSID, default: []].insert("secret-\(kind.rawValue)")
    }
  }
}
