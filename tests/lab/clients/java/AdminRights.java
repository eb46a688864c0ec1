import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/** An operator's work on who may do what and how much: ACLs, quotas, SCRAM credentials, delegation tokens. */
final class AdminRights {
    private AdminRights() { }

    static void acls(Admin admin) throws Exception {
        AclBinding read = acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, AclOperation.READ, AclPermissionType.ALLOW);
        AclBinding write = acl(ResourceType.TOPIC, "orders-", PatternType.PREFIXED, AclOperation.WRITE, AclPermissionType.DENY);
        AclBinding join = acl(ResourceType.GROUP, "*", PatternType.LITERAL, AclOperation.DESCRIBE, AclPermissionType.ALLOW);
        AdminWork.done("create acls", admin.createAcls(List.of(read, write, join)).all());
        AdminWork.done("describe acls", admin.describeAcls(AclBindingFilter.ANY).values());
        AdminWork.done("delete acls", admin.deleteAcls(List.of(read.toFilter(), AclBindingFilter.ANY)).all());
    }

    private static AclBinding acl(ResourceType type, String name, PatternType pattern, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(type, name, pattern),
            new AccessControlEntry("User:billing", "*", operation, permission));
    }

    static void quotas(Admin admin) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "billing", ClientQuotaEntity.CLIENT_ID, "billing-a"));
        AdminWork.done("alter quotas", admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.0), new ClientQuotaAlteration.Op("request_percentage", 12.5))))).all());
        AdminWork.done("describe quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        AdminWork.done("remove quota", admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all());
    }

    /** Lets the client id entity=C, or the user entity=C with kind=user, produce rate=N bytes a second; limit= names another. */
    static void quota(Lab.Words words) throws Exception {
        try (Admin admin = Admin.create(words.settings())) {
            ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(
                words.values().getOrDefault("kind", ClientQuotaEntity.CLIENT_ID), words.get("entity")));
            AdminWork.done("quota", admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
                new ClientQuotaAlteration.Op(words.values().getOrDefault("limit", "producer_byte_rate"), Double.valueOf(words.get("rate"))))))).all());
        }
    }

    static void scram(Admin admin) throws Exception {
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        AdminWork.done("upsert credential", admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("billing", info, "lab-only-password"))).all());
        AdminWork.done("describe credentials", admin.describeUserScramCredentials().all());
        AdminWork.done("delete credential", admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("billing", ScramMechanism.SCRAM_SHA_256))).all());
        AdminWork.refused("delete credential again", admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("billing", ScramMechanism.SCRAM_SHA_256))).all());
    }

    /** Needs a connection that has authenticated itself. */
    static void tokens(Admin admin) throws Exception {
        var options = new CreateDelegationTokenOptions().maxLifetimeMs(3_600_000)
            .renewers(List.of(new KafkaPrincipal("User", "billing")));
        var token = AdminWork.done("create token", admin.createDelegationToken(options).delegationToken());
        // Brokers learn of a new token a moment later, and the controller renews what its own broker knows.
        while (AdminWork.done("describe tokens", admin.describeDelegationToken().delegationTokens()).isEmpty()) {
            Lab.goesOn(50);
        }
        AdminWork.done("renew token", admin.renewDelegationToken(token.hmac()).expiryTimestamp());
        AdminWork.done("expire token", admin.expireDelegationToken(token.hmac()).expiryTimestamp());
    }
}
