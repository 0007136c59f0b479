import Foundation
import HTTPServer
import HubStorage

extension Checkup {
  func permissions() -> [Finding] {
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
    for path in configuration.secretFiles {
      var status = stat()
      // Reading by the group may be intended, as in /etc/belfry.
      guard stat(path, &status) == 0, status.st_mode & 0o006 != 0 else { continue }
      findings.append(
        .error(
          "permissions", "\(path) has mode \(String(status.st_mode & 0o777, radix: 8))",
          why: "other users of this machine can read the secret in it", do: "chmod o-rwx \(path)")
      )
    }
    return findings.isEmpty
      ? [.ok("permissions", "only its owner can read \(data.path)")] : findings
  }

  func disk() -> [Finding] {
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

  func descriptors() -> Finding {
    let limit = DescriptorLimit.raise()
    if DescriptorLimit.fault(limit) != nil {
      return .error(
        "open-files", "\(limit) open files here, and a server needs \(DescriptorLimit.reserve)",
        why: "a server started from here refuses to start",
        do: "ulimit -n; a service has LimitNOFILE= of its own, which does not show here")
    }
    let connections = DescriptorLimit.connections(within: limit)
    let wanted = configuration.integer(.connectionLimit)
    let text = "\(limit) open files here, room for \(connections) connections of \(wanted)"
    guard connections < wanted else { return .ok("open-files", text) }
    return .warning(
      "open-files", text, why: "a server started from here refuses connections beyond that",
      do: "ulimit -n; a service has LimitNOFILE= of its own, which does not show here")
  }

  /// Detects a clock that was set back; the right time is not known here.
  func clock() -> [Finding] {
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

  func server() async -> Finding {
    guard let address = data.address else {
      return data.isServed
        ? .warning(
          "server", "a server runs here, but has not published its address",
          why: "commands do not find it", do: "look into its log: it may still be starting")
        : .ok("server", "no server runs here")
    }
    do {
      let health = try await ServerHealth.ask(address, anchorsPEM: [])
      // The durability of the database is a separate finding here.
      let words = (health.report.reasons + health.report.warnings)
        .filter { $0.code != "database-not-synchronous" }.map { "\($0.code): \($0.text)" }
      if health.status == 200, words.isEmpty { return .ok("server", "ready at \(address)") }
      let text = "\(health.report.status) at \(address); " + words.joined(separator: "; ")
      return Finding(
        level: health.status == 200 ? .warning : .error, code: "server", text: text,
        why: health.status == 200
          ? "it works, but something needs attention" : "it cannot do its work",
        advice: "docs/reference/metrics.md#health explains each code")
    } catch {
      return data.isServed
        ? .error(
          "server", "\(error)", why: "clients are not answered either",
          do: "look into its log, and restart it if it hangs")
        : .ok("server", "no server runs here; the last one was at \(address)")
    }
  }
}
