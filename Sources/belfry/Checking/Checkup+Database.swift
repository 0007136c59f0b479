import Foundation
import HubCore
import HubStorage
import NotificationHubs
import PushGateways
import SQLDatabase

extension Checkup {
  func database() -> [Finding] {
    let file: StoreFile
    do { file = try StoreFile(path: data.database) } catch {
      return [Self.broken("database", error)]
    }
    defer { file.connection.close() }
    var findings: [Finding] = []
    if (try? file.hasUnfinishedMove()) == true {
      findings.append(
        .error(
          "move", "a move into \(data.database) is not finished",
          why: "a part of the hub is missing in it, and no server takes it",
          do: "run the same `belfry move` again, or remove the file and start over"))
    }
    let faults = file.connection.faults(comparesIndexes: isThorough)
    if faults.isEmpty {
      findings.append(.ok("integrity", "\(data.database) is sound, schema version \(file.schema)"))
    } else {
      findings.append(
        .error(
          "integrity", "\(data.database) is damaged: \(faults.prefix(3).joined(separator: "; "))",
          why: "the data on these pages is lost, and the damage may spread",
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
      let missing = try file.missingTables()
      guard missing.isEmpty else { return findings + [Self.lacking(missing)] }
      findings += try agreement(file)
    } catch {
      findings.append(
        .error(
          "agreement", "tags and sums cannot be read: \(StoreError.orRefusal(error))",
          why: "sends to tags go wrong", do: "restore a backup"))
    }
    return findings + secrets(file)
  }

  private static func lacking(_ tables: [String]) -> Finding {
    .error(
      "tables",
      "the database lacks the \(tables.count == 1 ? "table" : "tables") "
        + tables.joined(separator: ", "),
      why: "what was in them is lost, and requests that need them fail",
      do: "stop the server, keep the database, restore a backup")
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
          why: "statistics show wrong numbers; sends are not affected", do: defect))
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

  private func secrets(_ file: StoreFile) -> [Finding] {
    let sealing: any SecretSealing
    do { sealing = try data.sealing(masterKey: configuration.text(.masterKey)) } catch {
      return [noKey("\(error)")]
    }
    do {
      try file.check(sealing)
      let gateways = PushGatewayDirectory(clock: .system, random: .system)
      let values = try file.sealedValues(sealing)
      guard values.unopened.isEmpty else { return [Self.key(values)] }
      let ending = try file.credentials(sealing).compactMap { hub, credential in
        gateways.end(of: credential).flatMap { end in
          expiry(
            "credential", of: "the \(credential.platform.rawValue) credential of hub \(hub)", end,
            do: "belfry credential set \(credential.platform.rawValue) --hub \(hub) …")
        }
      }
      return [Self.key(values)] + ending
    } catch StoreError.sealedSecret {
      return [noKey("the master key does not open what is sealed")]
    } catch {
      return [Self.broken("key", error)]
    }
  }

  // MARK: PostgreSQL

  func postgres(_ address: String) async -> [Finding] {
    guard
      configuration.text(.masterKey) != nil
        || FileManager.default.fileExists(atPath: data.masterKeyFile)
    else {
      return [noKey("there is no \(data.masterKeyFile)")]
    }
    var options = PostgresHubStore.Options()
    options.mayMigrate = false
    do {
      let (store, _) = try await data.openPostgres(
        address, masterKey: configuration.text(.masterKey), options: options, mayMake: false)
      let findings = try await Self.postgres(store)
      try await store.close()
      return findings
    } catch {
      return [Self.broken("database", error)]
    }
  }

  private func noKey(_ text: String) -> Finding {
    .error(
      "key", text, why: "no sealed value can be opened, and no server starts",
      do:
        "put the master key of this database into \(data.masterKeyFile) (it is in backups made without "
        + "--without-master-key, and with every other node), or set \(Setting.masterKey.variable)")
  }

  private static func key(_ values: SealedValues) -> Finding {
    let (opened, broken) = (values.counts.values.reduce(0, +), values.unopened)
    guard !broken.isEmpty else {
      return .ok("key", "the master key opens all that is sealed, \(opened.counted("value"))")
    }
    return .error(
      "key",
      "the master key does not open \(broken.count) of \((opened + broken.count).counted("sealed value")): "
        + broken.prefix(10).joined(separator: ", "),
      why: "policies and credentials among them do not work, nor does `belfry key rotate`",
      do:
        "set them again or delete them (belfry credential, belfry policy), or put the key that they are "
        + "sealed with into master.key, behind the one that is there")
  }

  private static func postgres(_ store: PostgresHubStore) async throws -> [Finding] {
    let load = try await store.connections()
    let alive = try await store.livingNodes()
    var findings: [Finding] =
      moved(try await store.moved()) + [
        .ok(
          "database",
          "PostgreSQL \(load.version) answers, the schema and the master key fit; "
            + "\(alive.count.counted("node")) alive")
      ]
    let missing = try await store.missingTables()
    if !missing.isEmpty { return findings + [lacking(missing)] }
    let text = "\(load.used) of \(load.limit) connections are in use"
    findings.append(
      load.limit - load.used < 20
        ? .warning(
          "connections", text,
          why: "each node takes eleven, and one that gets none cannot start",
          do: "raise max_connections, or put PgBouncer between")
        : .ok("connections", text))
    findings.append(key(try await store.sealedValues()))
    for warning in try await store.warnings() {
      findings.append(
        .warning(
          warning.code, warning.text, why: "several nodes rest on this one database",
          do: "docs/scale.md has the settings"))
    }
    if try await store.isOpenToAll() {
      findings.append(
        .warning(
          "database-open", "every role of the database's server may connect to the database",
          why: "one that does can hold the locks that writes wait for",
          do: "REVOKE CONNECT ON DATABASE … FROM PUBLIC, and GRANT it to Belfry's role"))
    }
    if alive.count > store.slots {
      findings.append(
        .warning(
          "slots",
          "\(alive.count) nodes live, and a broadcast is cut into \(store.slots.counted("part")) "
            + "(databaseSlots)",
          why: "\(alive.count - store.slots) of them have nothing to do in one",
          do: "stop them, or move to a database that is made with more slots (docs/scale.md)"))
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
}
