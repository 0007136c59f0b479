import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubStorage
import NotificationHubs
import PushGateways
import SQLDatabase

struct CheckCommand: Subcommand {
  static let about = CommandHelp(
    "check",
    "look for what is wrong with a hub's data, configuration and machine, and say what to do",
    discussion: """
      Reads the database to its last page and compares what is kept twice: members of tags and sums
      with the rows they are made of. Looks at files and who may read them, certificates and
      credentials that end, the clock, the disk, open files, the proxy's settings, and asks the
      server that runs. On PostgreSQL it asks the database.

      It only reads, also beside a running server, and is for the user and the configuration of the
      server. Ends with 0 when all is well, with 1 when it has found something. docs/operate/backup.md
      says what each finding means.
      """,
    examples: [
      "sudo -u belfry belfry check --config /etc/belfry/belfry.json",
      "belfry check --data /var/lib/belfry --thorough --json",
    ])

  @Option("--config", "FILE", "the configuration file (default: belfry.json here, if it is there)")
  var file: String?
  private let settings = SettingOptions([.data, .database])
  @Flag("--thorough", "compare each index with its table, too: takes some times as long")
  var isThorough
  @Flag("--json", "print one JSON object") var json

  func run(in context: CommandContext) async throws {
    let configuration = try Configuration(
      file: file, environment: context.environment, flags: settings.given)
    let data = try DataDirectory.existing(
      at: configuration.text(.data) ?? HubTarget.standardData, onlyReads: true)
    let check = Checkup(
      data: data, configuration: configuration, context: context, isThorough: isThorough)
    let findings = await check.findings()
    let wrong = findings.filter { $0.level != .ok }.count
    if json {
      try context.printJSON(Report(isWell: wrong == 0, findings: findings))
    } else {
      for finding in findings {
        context.print(
          finding.level.rawValue.padded(to: 8) + finding.code.padded(to: 13) + finding.text)
        for (word, text) in [("why", finding.why), ("do", finding.advice)] {
          if let text { context.print("        " + (word + ":").padded(to: 5) + text) }
        }
      }
    }
    if wrong > 0 {
      throw CommandFailure("\(wrong.counted("thing")) of \(findings.count) to look at")
    }
  }

  private struct Report: Encodable {
    let isWell: Bool
    let findings: [Finding]
  }
}

/// What was looked at, and what there is to do about it.
struct Finding: Encodable, Equatable {
  enum Level: String, Encodable { case ok, warning, error }
  let level: Level
  /// For scripts: `integrity`, `disk`.
  let code: String
  let text: String
  var why: String?
  var advice: String?

  static func ok(_ code: String, _ text: String) -> Finding {
    Finding(level: .ok, code: code, text: text)
  }
  static func warning(_ code: String, _ text: String, why: String, do advice: String) -> Finding {
    Finding(level: .warning, code: code, text: text, why: why, advice: advice)
  }
  static func error(_ code: String, _ text: String, why: String, do advice: String) -> Finding {
    Finding(level: .error, code: code, text: text, why: why, advice: advice)
  }
}

/// One look at everything.
struct Checkup {
  let data: DataDirectory
  let configuration: Configuration
  let context: CommandContext
  var isThorough = false
  var now = Date()

  /// From this long before their end on, certificates are warned of, as the server does.
  private static let margin: TimeInterval = 30 * 86_400

  func findings() async -> [Finding] {
    var findings = permissions()
    let address: String?
    do { address = try data.postgres(configuration.text(.database)) } catch {
      return findings + [Self.broken("data", error)]
    }
    if let address {
      findings += await postgres(address)
    } else {
      findings += database()
    }
    findings += certificates() + clock() + disk() + proxies() + [descriptors()]
    findings.append(await server())
    return findings
  }

  private static func broken(_ code: String, _ error: any Error) -> Finding {
    .error(
      code, "\(error)", why: "a server cannot work with it",
      do: "see docs/operate/troubleshooting.md for this sentence")
  }

  // MARK: Files

  private func permissions() -> [Finding] {
    var findings: [Finding] = []
    var owner = stat()
    guard stat(data.path, &owner) == 0 else { return [] }
    let keys = ["master.key", "backend.key", "tls-ca-key.pem", "database"]
    let others = ["", "belfry.sqlite", "belfry.sqlite-wal", "belfry.sqlite-shm", "operators"]
    for name in keys + others {
      let path = name.isEmpty ? data.path : data.path + "/" + name
      var status = stat()
      guard stat(path, &status) == 0 else { continue }
      if status.st_mode & 0o077 != 0 {
        let mode = String(status.st_mode & 0o777, radix: 8)
        let isKey = keys.contains(name)
        findings.append(
          Finding(
            level: isKey ? .error : .warning, code: "permissions", text: "\(path) has mode \(mode)",
            why: isKey
              ? "other users of this machine can read what opens every key and credential"
              : "other users of this machine can read handles and tags of devices",
            advice: "chmod \(name.isEmpty ? "0700" : "0600") \(path)"))
      }
      if status.st_uid != owner.st_uid {
        findings.append(
          .warning(
            "permissions", "\(path) belongs to another user than \(data.path)",
            why: "the server may not be able to open it after its next start",
            do: "chown it as the directory, and run commands as the user of the server"))
      }
    }
    return findings.isEmpty
      ? [.ok("permissions", "only its owner can read \(data.path)")] : findings
  }

  private func disk() -> [Finding] {
    guard let room = context.room(data.path) else { return [] }
    let size =
      (try? FileManager.default.attributesOfItem(atPath: data.database)[.size] as? Int64) ?? 0
    let text = "\(room.megabytes) are free in \(data.path)"
    if room < 100_000_000 {
      return [
        .error(
          "disk", text, why: "on a full disk nothing can be registered or sent", do: "make room")
      ]
    }
    if room < size {
      return [
        .warning(
          "disk", text + ", where the database takes \(size.megabytes)",
          why: "a backup needs as much as the database is long, an upgrade twice that",
          do: "make room before the next upgrade")
      ]
    }
    return [.ok("disk", text)]
  }

  private func descriptors() -> Finding {
    let limit = DescriptorLimit.raise()
    let connections = DescriptorLimit.connections(within: limit)
    let wanted = configuration.integer(.connectionLimit)
    let text = "\(limit) open files here, room for \(connections) connections of \(wanted)"
    guard connections < wanted else { return .ok("open-files", text) }
    return .warning(
      "open-files", text, why: "a server started from here refuses connections beyond that",
      do: "ulimit -n; a service has LimitNOFILE= of its own, which does not show here")
  }

  /// Nobody here knows the right time: what shows is a clock that was set back.
  private func clock() -> [Finding] {
    var newest = (try? StoreFile(path: data.database))?.lastCommit ?? .distantPast
    for name in ["belfry.sqlite", "belfry.sqlite-wal", "lock", "address"] {
      let attributes = try? FileManager.default.attributesOfItem(atPath: data.path + "/" + name)
      newest = max(newest, attributes?[.modificationDate] as? Date ?? .distantPast)
    }
    guard newest > now + 60 else {
      return [
        .ok("clock", "not before the last write; whether it is right, only a time server knows")
      ]
    }
    return [
      .error(
        "clock",
        "it is \(now.formatted(.iso8601)), and something was written at \(newest.formatted(.iso8601))",
        why:
          "tokens expire and schedules fire by the clock, and push services refuse tokens of another time",
        do: "set the clock, and let systemd-timesyncd or chrony keep it")
    ]
  }

  // MARK: The database in a file

  private func database() -> [Finding] {
    let file: StoreFile
    do { file = try StoreFile(path: data.database) } catch {
      return [Self.broken("database", error)]
    }
    defer { file.connection.close() }
    var findings: [Finding] = []
    let faults = file.connection.faults(comparesIndexes: isThorough)
    if faults.isEmpty {
      findings.append(.ok("integrity", "\(data.database) is sound, schema version \(file.schema)"))
    } else {
      findings.append(
        .error(
          "integrity", "\(data.database) is damaged: \(faults.prefix(3).joined(separator: "; "))",
          why: "what stands on these pages is lost, and more may go",
          do: "stop the server, keep the file, restore a backup; look at the disk (smartctl, dmesg)"
        ))
    }
    let discarded = Result { try file.discardedCommits() }
    if case .success(let discarded?) = discarded {
      findings.append(
        .error(
          "log", "\(discarded)", why: "devices and sends of that time are missing",
          do:
            "put belfry.sqlite and its -wal of one moment back, or accept it: the next start forgets the "
            + "mark"))
    }
    guard file.isCurrent else {
      return findings + [
        .ok(
          "schema",
          "version \(file.schema): the next start of a server brings it to "
            + "\(StoreFile.newestSchema); tags and sums were not compared")
      ]
    }
    do {
      findings += try agreement(file)
    } catch {
      findings.append(
        .error(
          "agreement", "tags and sums cannot be read: \(StoreError.orRefusal(error))",
          why: "sends to tags go wrong", do: "restore a backup"))
    }
    return findings + credentials(file)
  }

  private func agreement(_ file: StoreFile) throws -> [Finding] {
    var findings: [Finding] = []
    let tags = try file.audienceFaults()
    let defect = "this is a defect of Belfry, or damage: report it, and make a backup now. "
    if tags.wrong == 0 {
      findings.append(
        .ok("audience", "\(tags.of.counted("tag")) have the members that the rows say"))
    } else {
      findings.append(
        .error(
          "audience",
          "\(tags.wrong) of \(tags.of.counted("tag")) have other members than the rows say",
          why: "sends to them reach devices that do not have the tag, or miss some that do",
          do: defect + "`belfry export` and `belfry import` into a new directory make them again"))
    }
    let totals = try file.totalFaults()
    if totals > 0 {
      findings.append(
        .warning(
          "sums", "\(totals.counted("sum")) of registrations by hub and platform do not add up",
          why: "statistics show wrong numbers; sends are not concerned", do: defect))
    }
    let orphans = try file.orphans()
    for (rows, count) in orphans {
      findings.append(
        .warning(
          "orphans", "\(count) \(rows)", why: "they take room, and may be sent to", do: defect))
    }
    if totals == 0, orphans.isEmpty {
      findings.append(.ok("rows", "sums add up, and every row belongs to something"))
    }
    return findings
  }

  private func credentials(_ file: StoreFile) -> [Finding] {
    do {
      let sealing = try data.sealing(masterKey: configuration.text(.masterKey))
      try file.check(sealing)
      let gateways = PushGatewayDirectory(PushGatewaysConfiguration())
      let all = try file.credentials(sealing)
      let ending = all.compactMap { hub, credential in
        gateways.end(of: credential).flatMap { end in
          expiry(
            "credential", of: "the \(credential.platform.rawValue) credential of hub \(hub)", end,
            do: "belfry credential set \(credential.platform.rawValue) --hub \(hub) …")
        }
      }
      return [.ok("key", "the master key opens \(all.count.counted("credential"))")] + ending
    } catch StoreError.sealedSecret {
      return [
        .error(
          "key", "the master key does not open what is sealed",
          why: "a server does not start with it",
          do: "put back the master.key, or BELFRY_MASTER_KEY, that belongs to this database")
      ]
    } catch {
      return [Self.broken("key", error)]
    }
  }

  /// - Returns: `nil` when the end is far.
  private func expiry(_ code: String, of what: String, _ end: Date, do advice: String) -> Finding? {
    guard end < now + Self.margin else { return nil }
    let text = "\(what) \(end < now ? "has ended" : "ends") at \(end.formatted(.iso8601))"
    return end < now
      ? .error(code, text, why: "it is refused now", do: advice)
      : .warning(code, text, why: "it is refused from then on", do: advice)
  }

  // MARK: PostgreSQL

  private func postgres(_ address: String) async -> [Finding] {
    guard
      configuration.text(.masterKey) != nil
        || FileManager.default.fileExists(atPath: data.masterKeyFile)
    else {
      return [
        .error(
          "key", "there is no \(data.masterKeyFile)", why: "nothing sealed can be opened",
          do: "copy it from another node, or set \(Setting.masterKey.variable)")
      ]
    }
    var options = PostgresHubStore.Options()
    options.mayMigrate = false
    do {
      let (store, _) = try await data.openPostgres(
        address, masterKey: configuration.text(.masterKey), options: options)
      let findings = try await Self.postgres(store)
      try await store.close()
      return findings
    } catch {
      return [Self.broken("database", error)]
    }
  }

  private static func postgres(_ store: PostgresHubStore) async throws -> [Finding] {
    let load = try await store.connections()
    let alive = try await store.nodes().filter(\.isAlive)
    var findings: [Finding] = [
      .ok(
        "database",
        "PostgreSQL \(load.version) answers, the schema and the master key fit; "
          + "\(alive.count.counted("node")) alive")
    ]
    let text = "\(load.used) of \(load.limit) connections are in use"
    findings.append(
      load.limit - load.used < 20
        ? .warning(
          "connections", text,
          why: "each node takes some fifteen, and one that gets none cannot start",
          do: "raise max_connections, or put PgBouncer between")
        : .ok("connections", text))
    if let warning = try await store.durabilityWarning() {
      findings.append(
        .warning(
          "durability", warning, why: "what was accepted is to survive the loss of one server",
          do: "docs/scale.md has the settings"))
    }
    if Set(alive.map(\.version)).count > 1 {
      findings.append(
        .warning(
          "nodes",
          "nodes of several versions are alive: "
            + Set(alive.map(\.version)).sorted().joined(separator: ", "),
          why: "that is for the time of an upgrade", do: "bring the others up to date"))
    }
    return findings
  }

  // MARK: Configuration

  private func certificates() -> [Finding] {
    if let certificate = configuration.text(.tlsCertificate) {
      let files = CertificateFiles(
        certificate: certificate, key: configuration.text(.tlsKey) ?? certificate)
      do {
        let end = try files.read().certificate.notAfter ?? .distantFuture
        let advice = "renew it (\(certificate)); a running server takes the new files up"
        return [
          expiry("certificate", of: "the HTTPS certificate", end, do: advice)
            ?? .ok("certificate", "the HTTPS certificate is valid until \(end.formatted(.iso8601))")
        ]
      } catch {
        return [
          .error(
            "certificate", "\(error)", why: "a server does not start with it",
            do: "mend the two files")
        ]
      }
    }
    let own = data.path + "/" + BackupPart.authority.rawValue
    guard let pem = try? String(contentsOfFile: own, encoding: .utf8),
      let end = (try? Certificate(pem: pem))?.notAfter
    else { return [] }
    let advice =
      "with the server stopped remove \(own) and \(BackupPart.authorityKey.rawValue); clients have to "
      + "trust the new one"
    return [expiry("certificate", of: "the authority of tlsSelfSigned", end, do: advice)]
      .compactMap(\.self)
  }

  private func proxies() -> [Finding] {
    let proxies = configuration.list(.trustedProxies)
    let speaksTLS = configuration.text(.tlsCertificate) != nil || configuration.flag(.tlsSelfSigned)
    do { _ = try TrustedProxies(proxies) } catch {
      return [
        .error(
          "proxy", "trustedProxies: \(error)", why: "a server does not start with it", do: "mend it"
        )
      ]
    }
    var findings: [Finding] = []
    let scheme = configuration.text(.publicScheme)
    if scheme == "https", !speaksTLS, proxies.isEmpty {
      findings.append(
        .warning(
          "proxy",
          "publicScheme says that a proxy speaks TLS in front, and trustedProxies names none",
          why:
            "all clients have the proxy's address: they share one limit on connections and on wrong "
            + "passwords", do: "set trustedProxies to the proxy's address"))
    }
    if !proxies.isEmpty, !speaksTLS, scheme != "https" {
      findings.append(
        .warning(
          "proxy", "a proxy is trusted, and publicScheme is not https",
          why: "addresses in replies (Location, the portal's sign-in) begin with http",
          do: "set publicScheme to https if the proxy speaks TLS"))
    }
    let address = configuration.text(.address) ?? "127.0.0.1"
    if !speaksTLS, proxies.isEmpty, !["127.0.0.1", "::1", "localhost"].contains(address) {
      findings.append(
        .warning(
          "proxy", "it listens on \(address) without TLS",
          why: "keys, tokens and payloads travel in the clear",
          do: "give it a certificate, or put a proxy in front (docs/operate/proxies.md)"))
    }
    return findings.isEmpty
      ? [.ok("proxy", "the settings for proxies and TLS fit together")] : findings
  }

  // MARK: The server

  private func server() async -> Finding {
    guard let address = data.address else {
      return data.isServed
        ? .warning(
          "server", "a server works here and has not said where it listens",
          why: "commands do not find it", do: "look into its log: it may still be starting")
        : .ok("server", "no server runs here")
    }
    do {
      let health = try await ServerHealth.ask(address, anchorsPEM: [])
      let words = (health.report.reasons + health.report.warnings).map { "\($0.code): \($0.text)" }
      if health.status == 200, words.isEmpty { return .ok("server", "ready at \(address)") }
      let text = "\(health.report.status) at \(address); " + words.joined(separator: "; ")
      return Finding(
        level: health.status == 200 ? .warning : .error, code: "server", text: text,
        why: health.status == 200 ? "it works, and something needs care" : "it cannot do its work",
        advice: "docs/operations.md#health has what each word means")
    } catch {
      return data.isServed
        ? .error(
          "server", "\(error)", why: "clients are not answered either",
          do: "look into its log, and restart it if it hangs")
        : .ok("server", "no server runs here; the last one was at \(address)")
    }
  }
}
