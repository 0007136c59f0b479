import Authentication
import Cryptography
import Foundation
import HTTPClient
import HTTPServer
import HubCore
import HubServer
import HubStorage
import NotificationHubs
import PushGateways

extension HubRuntime.Options {
  /// - Throws: ``CommandFailure`` if a file or directory that the configuration names is unusable.
  ///
  /// - Parameters:
  ///   - data: The data directory, in place of the configuration's.
  ///   - mayMake: Whether the directory is created if it is missing; see ``mayMake``.
  ///   - checksStart: Whether to find, too, what would prevent the start of a server later.
  ///   - context: The context that prints the log's lines.
  init(
    _ configuration: Configuration, data: String? = nil, mayMake: Bool = true,
    checksStart: Bool = false, in context: CommandContext
  ) throws {
    let path = data ?? configuration.text(.data) ?? "belfry-data"
    self.init(data: DataDirectory(path: URL(fileURLWithPath: path).standardizedFileURL.path))
    self.mayMake = mayMake
    try self.data.checkUser()
    for setting in Setting.all { setting.apply(&self, configuration.list(setting)) }
    if let masterKey {
      do {
        _ = try MasterKeyRing(text: masterKey, origin: "this setting")
      } catch {
        throw configuration.fault(.masterKey, "\(error)")
      }
    }
    if let database {
      if let fault = DatabaseAddress.fault(database) {
        throw configuration.fault(.database, fault)
      }
      if case .flag = configuration.entries[Setting.database.key]?.origin,
        DatabaseAddress.hasPassword(database)
      {
        throw configuration.fault(.database, DatabaseAddress.openPassword)
      }
    }
    databaseSlots = try configuration.databaseSlots()
    guard address == "localhost" || IPAddress(address) != nil else {
      throw configuration.fault(
        .address, "must be an IP address such as 127.0.0.1 or 0.0.0.0, not '\(address)'")
    }
    do {
      trustedProxies = try TrustedProxies(configuration.list(.trustedProxies))
    } catch {
      throw configuration.fault(.trustedProxies, error.description)
    }
    provider = try Self.provider(configuration)
    for path in configuration.list(.trust) {
      do {
        anchorsPEM += Array(try Data(contentsOf: URL(fileURLWithPath: path))) + [10]
      } catch {
        throw configuration.fault(.trust, "\(path) cannot be read: \(Configuration.reason(error))")
      }
    }
    log = context.hubLog(
      level: configuration.text(.logLevel).flatMap(LogLevel.init(rawValue:)) ?? .info,
      format: configuration.text(.logFormat).flatMap(LogFormat.init(rawValue:)) ?? .text)
    guard metricsAddress == "localhost" || IPAddress(metricsAddress) != nil else {
      throw configuration.fault(
        .metricsAddress, "must be an IP address such as 127.0.0.1, not '\(metricsAddress)'")
    }
    if let metricsToken, metricsToken.utf8.count < 16 {
      throw configuration.fault(.metricsToken, "must have at least 16 characters")
    }
    // Last, so that a start prevented by a setting leaves no directory and no authority behind.
    try HTTPSOptions.check(configuration)
    if checksStart {
      let listeners = listeners(configuration)
      try PlannedListener.checkApart(listeners)
      // A directory that exists is not one that a failed start has left behind.
      if !FileManager.default.fileExists(atPath: self.data.path) {
        try checkFiles(configuration)
        try PlannedListener.tryOut(listeners)
      }
    }
    if mayMake { _ = try DataDirectory.make(at: path) }
    https = try HTTPSOptions(configuration, data: self.data)
  }
}

extension HubRuntime.Options {
  /// The listeners of a server with these options.
  private func listeners(_ configuration: Configuration) -> [PlannedListener] {
    var listeners = [
      PlannedListener(configuration.name(of: .port), host: address, port: Int(port))
    ]
    if configuration.text(.tlsCertificate) != nil || configuration.flag(.tlsSelfSigned) {
      listeners.append(
        PlannedListener(
          configuration.name(of: .tlsPort), host: address, port: configuration.integer(.tlsPort)))
    }
    if let metricsPort {
      listeners.append(
        PlannedListener(
          configuration.name(of: .metricsPort), host: metricsAddress, port: Int(metricsPort)))
    }
    return listeners
  }

  /// - Throws: ``CommandFailure`` for a file that would prevent the start of a server later.
  private func checkFiles(_ configuration: Configuration) throws {
    if let certificate = configuration.text(.tlsCertificate), let key = configuration.text(.tlsKey)
    {
      _ = try CertificateFiles(certificate: certificate, key: key).read()
    }
    if portal, let operatorFile {
      do { _ = try UserFile(path: operatorFile, form: .operators) } catch let fault
        as UserFile.Fault
      {
        throw CommandFailure("\(fault)", exitCode: .usage)
      }
    }
  }

  /// The OpenID provider for operators; `nil` if none is configured.
  private static func provider(_ configuration: Configuration) throws -> OpenIDConfiguration? {
    guard let issuer = configuration.text(.oidcIssuer) else {
      for setting in [Setting.oidcClient, .oidcSecretFile, .oidcName]
      where configuration.text(setting) != nil {
        throw configuration.fault(
          setting, "says something of a provider that 'oidcIssuer' does not name")
      }
      return nil
    }
    guard let client = configuration.text(.oidcClient), !client.isEmpty else {
      throw configuration.fault(.oidcIssuer, "needs 'oidcClient' as well")
    }
    guard var provider = OpenIDConfiguration(issuer: issuer, client: client) else {
      throw configuration.fault(
        .oidcIssuer, "must be an https address (or an http one of this machine), not '\(issuer)'")
    }
    provider.name = configuration.text(.oidcName)
    if let path = configuration.text(.oidcSecretFile) {
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw configuration.fault(.oidcSecretFile, "\(path) cannot be read")
      }
      let secret = text.trimmingCharacters(in: .whitespacesAndNewlines)
      guard !secret.isEmpty else { throw configuration.fault(.oidcSecretFile, "\(path) is empty") }
      provider.secret = secret
    }
    return provider
  }
}

extension Configuration {
  /// The configured number of slots of a new PostgreSQL database; `nil` if it is not set.
  /// - Throws: ``ConfigurationError`` for an invalid number.
  func databaseSlots() throws(ConfigurationError) -> Int? {
    if case .standard? = entries[Setting.databaseSlots.key]?.origin { return nil }
    let slots = integer(.databaseSlots)
    guard slots.nonzeroBitCount == 1 else {
      throw fault(.databaseSlots, "must be a power of two up to 256, such as 16, not \(slots)")
    }
    return slots
  }
}

extension PushCredential {
  fileprivate func hasSameWords(as other: PushCredential) -> Bool {
    platform == other.platform && properties == other.properties
  }
}

extension HubRuntime {
  /// Creates or updates the hubs that the configuration describes. Anything that it does not
  /// mention stays, and so does a credential that it would replace with an expired one.
  func apply(_ hubs: [HubConfiguration], log: HubLog) async throws {
    for wanted in hubs {
      var policies: [AccessPolicy] = []
      for policy in wanted.policies {
        policies.append(try policy.policy(at: service.clock.now(), random: service.random))
      }
      let present = try await service.store.hub(named: wanted.name)
      if let present {
        try await update(present, policies: policies, as: wanted)
      } else {
        _ = try await service.createHub(
          named: wanted.name, registrationTTL: wanted.registrationTTL, policies: policies)
      }
      let known = try await service.credentials.list(hub: wanted.name)
      for source in wanted.credentials {
        let credential = try source.credential(at: service.clock.now())
        // An unchanged credential keeps its back-off state and its trust.
        if known.contains(where: { $0.hasSameWords(as: credential) }) { continue }
        do {
          try PushGatewayDirectory.check(credential, at: service.clock.now())
        } catch {
          guard error.isExpiry else { throw error }
          log(
            .error, "credential.expired", "in the configuration: \(error)",
            [("hub", .text(wanted.name)), ("platform", .text(credential.platform.rawValue))])
          continue
        }
        try await service.credentials.set(credential, hub: wanted.name, checkedBy: gateways)
      }
    }
    try await applyWeights(hubs)
  }

  /// Passes the weight of each hub to the delivery engine.
  private func applyWeights(_ hubs: [HubConfiguration]) async throws {
    var weights: [Hub.ID: Double] = [:]
    for wanted in hubs {
      guard let hub = try await service.store.hub(named: wanted.name) else { continue }
      weights[hub.id] = Double(wanted.weight)
    }
    await service.dispatcher.setWeights(weights)
  }

  /// Updates a hub; keys that the configuration leaves open stay unchanged.
  private func update(_ hub: Hub, policies: [AccessPolicy], as wanted: HubConfiguration)
    async throws
  {
    let present = try await service.policies.list(hub: hub.name)
    for (policy, source) in zip(policies, wanted.policies) {
      var next = policy
      if let old = present.first(where: { $0.name == policy.name }) {
        if source.primaryKey == nil { next.primaryKey = old.primaryKey }
        if source.secondaryKey == nil { next.secondaryKey = old.secondaryKey }
        next.modifiedAt = old.modifiedAt
        if next.rights == old.rights, next.primaryKey == old.primaryKey,
          next.secondaryKey == old.secondaryKey
        {
          continue
        }
        next.modifiedAt = service.clock.now()
      }
      try await service.store.putAccessPolicy(next, hub: hub.id)
    }
  }
}
