import Cryptography

/// APNs apps and devices as the control API makes them.
extension EmulatorState {
  /// What a new app is made from; `nil` members are made.
  struct APNsAppRequest: Sendable {
    var bundleID: String
    var teamID: String?
    var environment = APNsEnvironmentScope.both
    var keys: [Key]?
    var certificates: [String] = []
    var hasBroadcasts = true

    struct Key: Sendable {
      var kid: String
      var publicKey: P256PublicKey
      var scope = APNsKeyScope.team
      var topics: [String] = []
      var environment = APNsEnvironmentScope.both
    }
  }

  /// - Returns: The app's number, and the private key's PEM by key id when one was made.
  mutating func addApp(
    _ request: APNsAppRequest
  ) throws(ControlError) -> (number: UInt32, made: (kid: String, privateKeyPEM: String)?) {
    if let team = request.teamID, apns.app(team: team, bundleID: request.bundleID) != nil {
      throw .conflict("team '\(team)' has an app '\(request.bundleID)' already")
    }
    for key in request.keys ?? [] where apns.keys[key.kid] != nil {
      throw .conflict("there is a key '\(key.kid)' already")
    }
    let team = request.teamID ?? generator.appleID()
    var keys = request.keys ?? []
    var made: (kid: String, privateKeyPEM: String)?
    if request.keys == nil, request.certificates.isEmpty {
      let privateKey: P256PrivateKey
      do {
        privateKey = try P256PrivateKey()
        let key = APNsAppRequest.Key(
          kid: generator.appleID(), publicKey: try privateKey.publicKey(),
          environment: request.environment)
        made = (key.kid, try privateKey.pem())
        keys = [key]
      } catch {
        throw ControlError(status: 500, code: "engine", message: "\(error)")
      }
    }
    let number = newApp(.apns)
    apns.add(
      APNsApp(
        number: number, bundleID: request.bundleID, teamID: team,
        environment: request.environment, certificates: request.certificates,
        hasBroadcasts: request.hasBroadcasts))
    for key in keys {
      apns.add(
        APNsKey(
          kid: key.kid, teamID: team, app: number, publicKey: key.publicKey,
          privateKeyPEM: made.flatMap { $0.kid == key.kid ? $0.privateKeyPEM : nil },
          scope: key.scope, topics: key.topics, environment: key.environment))
    }
    return (number, made)
  }

  /// Makes devices of an APNs app.
  ///
  /// - Parameter token: What the one new device gets.
  mutating func addDevices(
    _ request: DeviceRequest, environment: APNsEnvironment, kind: APNsKind = .alert,
    token: APNsToken? = nil
  ) throws(ControlError) -> Range<Int> {
    if let token, apns.device(token, in: environment) != nil {
      throw .conflict("a device of the \(environment) environment has that token already")
    }
    if request.count > 1 { apns.reserve(request.count, in: environment) }
    return addDevices(request) { state in
      let token = token ?? state.freshToken(in: environment)
      return .apns(APNsHandle(token: token, environment: environment, kind: kind))
    }
  }
}
